package cuda

import (
	"fmt"
	"slices"
)

// Options say which GPU to compute on, and how.
type Options struct {
	Driver  string // path of the driver's library; "": this machine's
	Ordinal int    // of the GPUs that the driver shows
	// Memory is the most bytes of device memory to take; 0: 90 % of what is free.
	Memory int64
	// Precision is "fp32" (or ""), "tf32" or "bf16": what the operands of products are
	// rounded to, where they lie on 16 bytes, and with bf16 also the rows that SpMM
	// gathers. Sums are in fp32.
	Precision string
	// Cut is for measurements.
	Cut Cut
	// Products is "own" (or ""), the kernels of this package, or "cublas", NVIDIA's library,
	// which has to be there; CUBLAS is its file, "": one that the system finds.
	Products string
	CUBLAS   string
	// Cubins is a folder that may have exact images of the kernels; "": there is none.
	Cubins string
	// Announce is told of what takes the user's time; nil: nobody is.
	Announce func(text string)
}

// precisions are the values of Options.Precision.
var precisions = []string{"fp32", "tf32", "bf16"}

// The values of Options.Products.
const (
	OwnProducts    = "own"
	CUBLASProducts = "cublas"
)

// check gives the options their defaults, or says what is wrong with them.
func (o *Options) check() error {
	if o.Precision == "" {
		o.Precision = precisions[0]
	}
	if !slices.Contains(precisions, o.Precision) {
		return fmt.Errorf("open cuda:%d: precision %q, want one of %v", o.Ordinal, o.Precision, precisions)
	}
	if o.Products == "" {
		o.Products = OwnProducts
	}
	if o.Products != OwnProducts && o.Products != CUBLASProducts {
		return fmt.Errorf("open cuda:%d: products by %q, want %s or %s", o.Ordinal, o.Products, OwnProducts, CUBLASProducts)
	}
	if o.Memory < 0 {
		return fmt.Errorf("open cuda:%d: at most %d bytes of memory; want more than 0, or 0 for 90 %% of what is free", o.Ordinal, o.Memory)
	}
	if o.Announce == nil {
		o.Announce = func(string) {}
	}
	return nil
}

// Package cuda computes on NVIDIA GPUs. All that it asks of a GPU's driver goes
// through the small interface driver, which has an implementation over
// gorgonia.org/cu (driver_cu.go) and a fake in the tests; everything else here is
// plain Go that compiles everywhere.
//
// A program is built with GPU support by the tag cuda, with cgo, on Linux on amd64 or
// arm64; anywhere else Built is false and no driver opens. A program with GPU support
// needs no driver to start: the driver is looked for when it is first asked for.
//
// # Ops
//
// Open gives a Device. Its Stream, queue, checks an op when it is called, and runs the
// ops in Wait, as one task on the device's worker; runner is what they run with. An op is
// written so:
//
//	func (q *queue) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
//		kernels.CheckHeadMean(dst, x, heads, ep)
//		o := q.op("HeadMean")
//		d, m, e := o.mat(dst), o.mat(x), o.epilogue(ep, kernels.Span{Hi: dst.Rows})
//		o.run(func(x *runner) error {
//			return x.each("dk_head_mean", d.rows, d.cols, d, m, int64(d.rows), int32(heads), int32(d.cols), shiftOf(d.cols), e)
//		})
//	}
//
// The check of package kernels comes first, then o.mat, o.graph and o.epilogue take the
// operands as they are now, and panic at those of another memory. The function given to
// o.run runs on the worker, later: what it uses of pointers besides the caller's slices,
// which belong to the stream until Wait, has to be copied before. It does not see
// other ops' errors: it does not run after one. An error that it returns is wrapped with
// the op's name and shapes.
//
// A kernel's arguments are given in order, as Go values whose types say what they are:
//
//	mat      pointer and stride, as in "dst, ldd"; the zero mat is null, with stride 0;
//	         m.p is the pointer alone (address); m.sub(lo, hi) are rows, m.on16() says
//	         that the forms for 16 bytes can read it (aligned(ms...): all of them)
//	address  pointer; 0 is null
//	list     pointer to the int32s of a slice of the caller: list{ids, lo, hi} brings the
//	         entries [lo,hi) to the device, unless they are kept there (Keep), and is the
//	         address where entry 0 would be: kernels index it by the row of the matrix
//	epi      DK_EPI, six arguments
//	int32, int64, uint64, float32; bool is an int32
//
// x.launch(kernel, blocks, args...) starts a kernel, with no blocks does nothing;
// x.each(kernel, rows, cols, args...) starts an elementwise one; over(a, b) is a/b rounded
// up; x.zero and x.copyMat are ready-made. x.scratch(bytes), x.scratchMat(rows, cols)
// and x.bytes(host) give device memory until the op's end, uninitialised or, the last,
// with a copy of the host's bytes (bytesOf(slice)). x.fetch(address, bytes, then) copies
// at most a few KiB back: then gets them before Wait returns.
//
// graph has the CSR on the device (g.on: rowptr, col, val), and its lists of rows: those
// with more edges than an op's row form takes are in g.on.long (SpMM) and g.on.parts
// (attention, maximum): i0, i1 := l.cut(rows) are those of a span, l.count(i0, i1) their
// chunks, l.on and l.chunksOn the device's lists. A launch over no rows is skipped by
// the op; a launch of the row form over rows that are all long is harmless.
//
// # Kernels
//
// The kernels are PTX in the program, sm_80 or sm_70, which the driver compiles the first
// time it meets them. Where Options.Cubins is a folder with an exact image for the GPU that
// make cubin has made of the same sources, that is loaded instead (cubin.go), at once. The
// two have other last bits: Describe says which it is, as it does of all on which they depend.
//
// # Products by cuBLAS
//
// Products are made by the kernels of csrc/cuda, or where Options.Products asks for it by
// cuBLAS (csrc/cublas), which is loaded then and never otherwise; what an epilogue does is
// then a kernel of its own. The library has one handle for a device, on its compute stream,
// with a workspace from the pool, and no atomics: NVIDIA promises the same bits each time
// for one version of it on one model of GPU. What it keeps for itself besides is outside of
// the pool and of the memory plan.
//
// Precision fp32 is CUBLAS_COMPUTE_32F, which keeps the bits of float32; tf32 and bf16
// are its forms that may be less precise. They may cut operands where our kernels round
// them, so that an operand is off by up to 2^-10, or 2^-7, of its size instead of half of
// that; bf16 may be computed in TF32; and no operand is left in fp32 for its alignment. The
// library chooses by shapes and addresses how it sums: a run that is streamed agrees with a
// resident one within rounding, where with our kernels it may to the bit.
//
// A driver may hang or end the process. Probe is therefore meant to be called in a
// process of its own, whose report travels as JSON.
package cuda

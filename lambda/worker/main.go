package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/aws/aws-lambda-go/lambda"

	"dorylus/kernels/devices"
)

// share is the part of a function's memory that Config.Memory may be: the rest is for
// messages, scratch matrices and the program.
const share = 0.6

// Main serves invocations until the environment ends: all of cmd/dorylus-lambda.
func Main() error {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		return errors.New("this is a Lambda worker: it is started by Lambda, or by 'dorylus-engine --mode=lambda', not by hand")
	}
	dev, err := devices.Open("auto")
	if err != nil {
		return fmt.Errorf("open a device: %w", err)
	}
	// A task is one thread; a stream needs another now and then.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2))
	w := New(Config{Device: dev, Memory: memory()})
	lambda.StartWithOptions(w, lambda.WithContext(context.Background()))
	return nil
}

// memory is Config.Memory in bytes, by the size of the function.
func memory() int64 {
	mb, err := strconv.Atoi(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	if err != nil {
		mb = 1769
	}
	return int64(share * float64(mb) * (1 << 20))
}

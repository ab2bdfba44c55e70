// Command dorylus-lambda is the Lambda worker: it computes tensor tasks for the graph
// server that has sent for it. It runs on AWS's provided.al2023, in an image, and
// under 'dorylus-engine lambda serve'.
package main

import (
	"fmt"
	"os"

	"dorylus/lambda/worker"
)

func main() {
	if err := worker.Main(); err != nil {
		fmt.Fprintln(os.Stderr, "dorylus-lambda:", err)
		os.Exit(1)
	}
}

// Command gpu measures a GPU: rates that a device reaches at the simplest tasks, and beside
// them gathers of several widths, in fp32 and bf16, in other tiles and panels and with other
// bounds of rows, attention, maximum, loss, epilogues, Adam, rows and products; and puts what
// a machine's steps have given, those of peers on the same device too, into one file.
// bench/gpu.sh and gpu_first.sh call it.
//
//	gpu kernels -store=STORE -out=kernels.json      rates and kernels
//	gpu report -dir=FOLDER -out=RESULT.json         one file of all steps, with goals
//
// It needs the build tag cuda. Times are between events on the device, the median of
// several rounds. An emulated device (DORYLUS_CUDA_DRIVER) computes everything and gives
// no times: the output says "emulated", and no goal is judged.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	err := errors.New("usage: gpu kernels|report [flags]; -h after one lists them")
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "kernels":
			err = kernelsCommand(os.Args[2:])
		case "report":
			err = reportCommand(os.Args[2:])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/gpu:", err)
		os.Exit(1)
	}
}

func kernelsCommand(args []string) error {
	fs := flag.NewFlagSet("kernels", flag.ExitOnError)
	store := fs.String("store", "", "folder of a prepared graph, as prepare makes it")
	out := fs.String("out", "kernels.json", "file to write")
	widths := fs.String("widths", "16,32,41,48,64,128,256,602", "columns of the gathers, by commas")
	rounds := fs.Int("rounds", 7, "times that each is measured; the median counts")
	ordinal := fs.Int("gpu", 0, "number of the GPU")
	megabytes := fs.Int64("rate-mb", 1024, "MiB of each copy of the rates")
	check := fs.Int("check", 1000, "rows of each gather that are compared with the processor's")
	sweep := fs.Bool("sweep", true, "also with other bounds of rows and other tiles")
	if err := fs.Parse(args); err != nil {
		return err
	}
	c := config{sweep: *sweep, store: *store, rounds: *rounds, ordinal: *ordinal, rateBytes: *megabytes << 20, check: *check, driver: os.Getenv("DORYLUS_CUDA_DRIVER")}
	for _, w := range strings.Split(*widths, ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return fmt.Errorf("-widths=%s: %q is not a number of columns", *widths, w)
		}
		c.widths = append(c.widths, n)
	}
	r, err := measure(c)
	if err != nil {
		return err
	}
	return write(*out, r)
}

// write puts v into a file as indented JSON.
func write(path string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

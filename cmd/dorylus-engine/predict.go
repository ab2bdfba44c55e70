package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"dorylus/engine/metric"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	run, data, out, weights string
	scores                  bool
}

func (a *app) predictCommand() *cobra.Command {
	f := &predictFlags{}
	cmd := &cobra.Command{
		Use:   "predict --run RUN -o FILE",
		Short: "Write a trained model's prediction for every vertex, in your own order and ids",
		Long: `Predict applies the model of a run to every vertex. FILE.npy gets one class number (int32) per vertex in
the order of the source, or with --scores one row of probabilities (float32). FILE.csv gets a line per
vertex: its id, the class, and with --scores the probabilities.`,
		Example: `  dorylus-engine --out=RUN
  dorylus-engine predict --run=RUN -o classes.csv
  dorylus-engine predict --run=RUN --scores -o scores.npy`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.predict(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.run, "run", "", "folder `RUN` of the trained model")
	fs.StringVarP(&f.out, "out", "o", "", "`FILE` to write, .npy or .csv")
	fs.StringVar(&f.data, "data", "", "another `GRAPH` with the same features and classes (default: the one trained on)")
	fs.StringVar(&f.weights, "weights", "best", "best (by validation) or final")
	fs.BoolVar(&f.scores, "scores", false, "write probabilities")
	complete(cmd, "weights", []string{"best", "final"})
	return cmd
}

func (a *app) predict(ctx context.Context, f *predictFlags) error {
	ext := filepath.Ext(f.out)
	switch {
	case f.run == "":
		return usagef("predict: name the folder of a trained model: --run=RUN")
	case f.out == "":
		return usagef("predict: name the file to write: -o FILE.npy or -o FILE.csv")
	case ext != ".npy" && ext != ".csv":
		return usagef("predict: -o %s: write a .npy or a .csv file", f.out)
	case f.weights != "best" && f.weights != "final":
		return usagef("--weights=%s: choose one of best, final", f.weights)
	}
	old, err := runLayer(f.run)
	if err != nil {
		return err
	}
	r, err := apply([]layer{old})
	if err != nil {
		return err
	}
	if f.data != "" {
		r.Data = f.data
	}
	st, err := a.loadData(ctx, &r.Config, true)
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	defer st.Close()
	logits, err := runPrediction(ctx, r.Config, st, f.run, f.weights == "final")
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	var b bytes.Buffer
	if ext == ".csv" {
		err = writePredictionsCSV(&b, st, logits, f.scores)
	} else if f.scores {
		writeNpy(&b, "<f4", []int{logits.Rows, logits.Cols}, probabilities(logits))
	} else {
		writeNpy(&b, "<i4", []int{logits.Rows}, classesOf(logits))
	}
	if err != nil {
		return err
	}
	if err := writeFile(f.out, b.Bytes()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "Wrote %s: %d vertices of %s, %d classes, by the %s weights of %s\n", f.out, logits.Rows, st.Meta.Name, logits.Cols, f.weights, f.run)
	return err
}

// classesOf is the most likely class of each vertex.
func classesOf(logits *kernels.Mat) []int32 {
	out := make([]int32, logits.Rows)
	for v := range out {
		out[v] = metric.Argmax(logits.Row(v))
	}
	return out
}

// probabilities is the softmax of each row, one row after the other.
func probabilities(logits *kernels.Mat) []float32 {
	out := make([]float32, 0, logits.Rows*logits.Cols)
	for v := range logits.Rows {
		row := logits.Row(v)
		top := math.Inf(-1)
		for _, x := range row {
			top = math.Max(top, float64(x))
		}
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(float64(x) - top)
		}
		for _, x := range row {
			out = append(out, float32(math.Exp(float64(x)-top)/sum))
		}
	}
	return out
}

// writeNpy writes values as a NumPy file of the given type and shape.
func writeNpy[T int32 | float32](w *bytes.Buffer, dtype string, shape []int, values []T) {
	dims := ""
	for _, n := range shape {
		dims += fmt.Sprintf("%d,", n)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, dims)
	const prefix = 10 // magic, version, length
	pad := 63 - (prefix+len(header))%64
	w.WriteString("\x93NUMPY\x01\x00")
	w.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header)+pad+1)))
	w.WriteString(header)
	w.Write(bytes.Repeat([]byte{' '}, pad))
	w.WriteByte('\n')
	for _, x := range values {
		_ = binary.Write(w, binary.LittleEndian, x) // a Buffer takes everything
	}
}

// writePredictionsCSV writes a line per vertex in the user's order.
func writePredictionsCSV(out io.Writer, st *store.Store, logits *kernels.Mat, scores bool) error {
	buf := bufio.NewWriter(out)
	w := csv.NewWriter(buf)
	name := func(c int) string {
		if c < len(st.Meta.ClassNames) {
			return st.Meta.ClassNames[c]
		}
		return strconv.Itoa(c)
	}
	head := []string{"id", "class"}
	if scores {
		for c := range logits.Cols {
			head = append(head, "p_"+name(c))
		}
	}
	if err := w.Write(head); err != nil {
		return err
	}
	var p []float32
	if scores {
		p = probabilities(logits)
	}
	for v, c := range classesOf(logits) {
		id := strconv.Itoa(v)
		if st.IDs != nil {
			id = st.IDs[v]
		}
		line := []string{id, name(int(c))}
		if scores {
			for _, x := range p[v*logits.Cols : (v+1)*logits.Cols] {
				line = append(line, strconv.FormatFloat(float64(x), 'g', -1, 32))
			}
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return buf.Flush()
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dorylus/engine/export"
	"dorylus/engine/metric"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	run, data, out, weights string
	embeddings              string
	scores                  bool
}

func (a *app) predictCommand() *cobra.Command {
	f := &predictFlags{}
	cmd := &cobra.Command{
		Use:   "predict --run RUN -o FILE",
		Short: "Write a trained model's prediction or embedding of every vertex, in your own order and ids",
		Long: `Predict applies the model of a run to every vertex. FILE.npy gets one class number (int32) per vertex in
the order of the source, or with --scores one row of probabilities (float32). FILE.csv gets a line per
vertex: its id, the class, and with --scores the probabilities; FILE.parquet the same columns. Where a vertex may
have several classes, FILE.npy gets a 0 or 1 per class.

The file of --embeddings, of the same formats, gets each vertex's last hidden representation, in the same order:
what the last layer reads, which is what the layer before it gives after normalisation and activation,
without dropout. Of appnp it is that of its MLP before the propagation, of sgc the features after
it, with --jumping-knowledge the output of the last layer. A model of one layer has none.`,
		Example: `  dorylus-engine --out=RUN
  dorylus-engine predict --run=RUN -o classes.csv
  dorylus-engine predict --run=RUN --scores -o scores.npy
  dorylus-engine predict --run=RUN --embeddings=vectors.parquet`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.predict(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.run, "run", "", "folder `RUN` of the trained model")
	fs.StringVarP(&f.out, "out", "o", "", "`FILE` to write, .npy, .csv or .parquet")
	fs.StringVar(&f.embeddings, "embeddings", "", "`FILE` to write the last hidden representations to, .npy, .csv or .parquet; -o may then be left out")
	fs.StringVar(&f.data, "data", "", "another `GRAPH` with the same features and classes (default: the one trained on)")
	fs.StringVar(&f.weights, "weights", "best", "best (by validation) or final")
	fs.BoolVar(&f.scores, "scores", false, "write probabilities")
	complete(cmd, "weights", []string{"best", "final"})
	return cmd
}

func (a *app) predict(ctx context.Context, f *predictFlags) error {
	switch {
	case f.run == "":
		return usagef("predict: name the folder of a trained model: --run=RUN")
	case f.out == "" && f.embeddings == "":
		return usagef("predict: name the file to write: -o FILE.npy, .csv or .parquet")
	case f.out != "" && !exportable(f.out):
		return usagef("predict: -o %s: write a .npy, .csv or .parquet file", f.out)
	case f.embeddings != "" && !exportable(f.embeddings):
		return usagef("predict: --embeddings=%s: write a .npy, .csv or .parquet file", f.embeddings)
	case f.out != "" && filepath.Clean(f.out) == filepath.Clean(f.embeddings):
		return usagef("predict: --embeddings=%s: that is the file of -o: name another one", f.embeddings)
	case f.out == "" && f.scores:
		return usagef("predict: --scores: name the file to write them to: -o FILE.npy, .csv or .parquet")
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
	logits, embedding, err := runPrediction(ctx, r.Config, st, f.run, f.weights == "final", f.embeddings != "")
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	if f.out != "" {
		if err := writeTable(f.out, predictions(st, logits, f.scores)); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Wrote %s: %d vertices of %s, %d classes, by the %s weights of %s\n", f.out, logits.Rows, st.Meta.Name, logits.Cols, f.weights, f.run)
	}
	if f.embeddings != "" {
		t := &export.Table{Rows: embedding.Rows, IDs: st.IDs, Embedding: embedding}
		if err := writeTable(f.embeddings, t); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Wrote %s: the last hidden representation of %d vertices of %s, %d values each, by the %s weights of %s\n",
			f.embeddings, embedding.Rows, st.Meta.Name, embedding.Cols, f.weights, f.run)
	}
	return nil
}

// exportable says whether a file of that name can be written.
func exportable(name string) bool { return slices.Contains(export.Extensions(), filepath.Ext(name)) }

// writeTable writes t to a file, all of it or nothing.
func writeTable(name string, t *export.Table) error {
	var b bytes.Buffer
	if err := export.Write(&b, name, t); err != nil {
		return err
	}
	return writeFile(name, b.Bytes())
}

// predictions are the logits as they are exported, in the user's order.
func predictions(st *store.Store, logits *kernels.Mat, scores bool) *export.Table {
	t := &export.Table{Rows: logits.Rows, IDs: st.IDs, ClassNames: st.Meta.ClassNames}
	if st.Multi != nil {
		t.Sets = &kernels.CSR{Cols: logits.Cols, RowPtr: make([]int64, 1, logits.Rows+1)}
		for v := range logits.Rows {
			for c, z := range logits.Row(v) {
				if z > 0 {
					t.Sets.Col = append(t.Sets.Col, int32(c))
				}
			}
			t.Sets.RowPtr = append(t.Sets.RowPtr, int64(len(t.Sets.Col)))
		}
	} else {
		t.Class = make([]int32, logits.Rows)
		for v := range t.Class {
			t.Class[v] = metric.Argmax(logits.Row(v))
		}
	}
	if scores {
		t.Scores = kernels.FromSlice(logits.Rows, logits.Cols, probabilities(logits, st.Meta.MultiLabel))
	}
	return t
}

// probabilities is the softmax of each row, or each value's sigmoid where a vertex
// may have several classes, one row after the other.
func probabilities(logits *kernels.Mat, multi bool) []float32 {
	out := make([]float32, 0, logits.Rows*logits.Cols)
	for v := range logits.Rows {
		row := logits.Row(v)
		top, sum := math.Inf(-1), 0.0
		for _, x := range row {
			top = math.Max(top, float64(x))
		}
		for _, x := range row {
			sum += math.Exp(float64(x) - top)
		}
		for _, x := range row {
			if multi {
				out = append(out, float32(1/(1+math.Exp(-float64(x)))))
			} else {
				out = append(out, float32(math.Exp(float64(x)-top)/sum))
			}
		}
	}
	return out
}

package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dorylus/engine"
	"dorylus/engine/export"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	run, data, out, weights string
	embeddings              string
	scores                  bool
	device                  string
	mode, gpu, gpuMemory    string // "": the run's
	gpuProducts             string
	servers                 int // processes of this machine; 0: this one
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
it, with --jumping-knowledge the output of the last layer. A model of one layer has none.

A run in mode gpu is predicted with on a GPU, unless --mode=cpu says otherwise; one in another mode on this
machine's cores, unless --mode=gpu does. The classes are the same but for ties, the numbers within rounding.

With --servers=N so many processes of this machine share the graph, as in launch local; on several machines
see serve predict. The files are the same to the byte. No process holds the values of all vertices: rows
come to the one that writes a few megabytes at a time. It holds a class for each vertex; of --scores and
--embeddings in .csv or .parquet a copy lies beside the file until it is written.`,
		Example: `  dorylus-engine --out=RUN
  dorylus-engine predict --run=RUN -o classes.csv
  dorylus-engine predict --run=RUN --scores -o scores.npy
  dorylus-engine predict --run=RUN --embeddings=vectors.parquet
  dorylus-engine predict --servers=4 --run=RUN -o classes.csv`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.predict(cmd.Context(), f) },
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.servers, "servers", 0, "graph servers, processes of this machine that share the work (default: this process alone)")
	return cmd
}

// add adds the flags of whoever predicts.
func (f *predictFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.run, "run", "", "folder `RUN` of the trained model")
	fs.StringVarP(&f.out, "out", "o", "", "`FILE` to write, .npy, .csv or .parquet")
	fs.StringVar(&f.embeddings, "embeddings", "", "`FILE` to write the last hidden representations to, .npy, .csv or .parquet; -o may then be left out")
	fs.StringVar(&f.data, "data", "", "another `GRAPH` with the same features and classes (default: the one trained on)")
	fs.StringVar(&f.weights, "weights", "best", "best (by validation) or final")
	fs.BoolVar(&f.scores, "scores", false, "write probabilities")
	fs.StringVar(&f.mode, "mode", "", "cpu or gpu: where to compute (default: as the run did; of a lambda run cpu)")
	fs.StringVar(&f.device, "device", "", "kernels of the processor, or cuda:0 (default: those that the run asked for)")
	fs.StringVar(&f.gpu, "gpu", "", "which GPUs: auto, or the driver's numbers, as 0 or 0,1 (default: those that the run asked for)")
	fs.StringVar(&f.gpuMemory, "gpu-memory", "", "the most memory to take of each GPU, as 12GiB or a share of what is free (default: as the run did)")
	fs.StringVar(&f.gpuProducts, "gpu-products", "", "what makes products on GPUs: own or cublas (default: as the run did)")
	complete(cmd, "mode", []string{"cpu", "gpu"})
	complete(cmd, "gpu-products", engine.GPUProducts)
	complete(cmd, "weights", []string{"best", "final"})
}

// check refuses flags that do not fit together.
func (f *predictFlags) check() error {
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
	case f.mode != "" && f.mode != "cpu" && f.mode != "gpu":
		return usagef("--mode=%s: choose cpu or gpu", f.mode)
	case f.gpuProducts != "" && !slices.Contains(engine.GPUProducts, f.gpuProducts):
		return usagef("--gpu-products=%s: choose one of %s", f.gpuProducts, list(engine.GPUProducts))
	case f.mode == "cpu" && (f.forGPUs() || f.onGPU()):
		return usagef("--mode=cpu: leave out --gpu, --gpu-memory, --gpu-products and --device=cuda:N, which are for GPUs")
	case f.device != "" && !f.onGPU() && (f.mode == "gpu" || f.forGPUs()):
		return usagef("--device=%s: it chooses kernels of the processor; leave it out, or --mode=gpu, --gpu, --gpu-memory and --gpu-products", f.device)
	case f.onGPU() && f.gpu != "":
		return usagef("--device=%s: give either it or --gpu=%s", f.device, f.gpu)
	case f.servers < 0:
		return usagef("--servers=%d: give 1 or more, or leave it out for this process alone", f.servers)
	}
	return nil
}

// onGPU says that --device names a GPU.
func (f *predictFlags) onGPU() bool { return strings.HasPrefix(f.device, gpuPrefix) }

// forGPUs says that a flag was given that means GPUs only.
func (f *predictFlags) forGPUs() bool { return f.gpu != "" || f.gpuMemory != "" || f.gpuProducts != "" }

// settle makes c, the settings of the run, those of the prediction.
func (f *predictFlags) settle(c *engine.Config) error {
	if f.data != "" {
		c.Data = f.data
	}
	switch {
	case f.onGPU():
		c.Mode, c.GPU = "gpu", strings.TrimPrefix(f.device, gpuPrefix)
	case f.mode != "":
		c.Mode = f.mode
	case f.forGPUs():
		c.Mode = "gpu"
	case f.device != "" || c.Mode != "gpu":
		c.Mode = "cpu"
	}
	if c.Mode != "gpu" {
		d := engine.DefaultConfig(c.Model)
		c.GPU, c.GPUMemory, c.Precision, c.GPUProducts = d.GPU, d.GPUMemory, d.Precision, d.GPUProducts
		if f.device != "" {
			c.Device = f.device
		}
		return nil
	}
	c.Device = "auto"
	if f.gpu != "" {
		c.GPU = f.gpu
	}
	if f.gpuMemory != "" {
		c.GPUMemory = f.gpuMemory
	}
	if f.gpuProducts != "" {
		c.GPUProducts = f.gpuProducts
	}
	return usage(c.Validate())
}

// exportable says whether a file of that name can be written.
func exportable(name string) bool { return slices.Contains(export.Extensions(), filepath.Ext(name)) }

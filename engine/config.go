package engine

// Config is everything that a training run can be told. The tag of a field is
// its name on the command line, in config files and, in capitals after DORYLUS_,
// in the environment.
//
// DefaultConfig is the starting point of the command line. In a Config that is
// written by hand, WithDefaults fills the fields whose zero value means nothing;
// where 0, "" or false is a setting of its own, it is taken at its word.
type Config struct {
	// Mode is where tensor tasks run: "cpu" (default), "gpu" or "lambda".
	Mode string `flag:"mode"`
	// Data is the graph: "cora" (default, built in), the folder of a store, a
	// file or folder in any format that prepare reads, or "synth:...".
	Data string `flag:"data"`
	// Features is what happens to the features of a source that is not a store
	// yet: "row-normalize", "standardize", "identity", "none" (as they are), or
	// "" (default): row-normalize for Planetoid files, else none.
	Features string `flag:"features"`
	// Order is the vertex order of a source that is not a store yet: "auto",
	// "metis", "lpa", "stream", "ldg", "fennel", "degree", "natural", "hash".
	Order string `flag:"order"`
	// Split makes a split instead of the data's own: "planetoid",
	// "per-class:TRAIN/VAL" or "random:TRAIN/VAL/TEST" (per cent). "": the data's.
	Split string `flag:"split"`
	// SplitFile reads the split or splits from a file. Not together with Split.
	SplitFile string `flag:"split-file"`
	// SplitIndex picks one of several splits, from 0. -1 (default): the first,
	// or with Runs > 1 split k mod n for run k.
	SplitIndex int `flag:"split-index"`

	// Model is "gcn" (default), "gat", "sage", "gin", "sgc", "appnp", or "mlp", which
	// gathers nothing.
	// Defaults of the fields below depend on it: DefaultConfig has them.
	Model string `flag:"model"`
	// Layers is the number of layers, at least 1; default 2.
	Layers int `flag:"layers"`
	// Hidden is the width of the hidden layers, of each head for gat; default 16, for
	// gat 8, for sage and gin 64. Unused with 1 layer.
	Hidden int `flag:"hidden"`
	// Heads is gat's number of attention heads in all layers but the last, whose
	// outputs are concatenated; default 8. OutHeads is that of the last layer, whose
	// outputs are averaged; default 1.
	Heads    int `flag:"heads"`
	OutHeads int `flag:"out-heads"`
	// Aggregator is sage's: "mean" (default) or "max".
	Aggregator string `flag:"aggregator"`
	// Hops is how often sgc and appnp propagate; default 2, for appnp 10. Alpha is
	// appnp's share of the prediction itself in each hop, in [0,1]; default 0.1.
	Hops  int     `flag:"hops"`
	Alpha float64 `flag:"alpha"`
	// Residual adds each hidden layer's input to its output; default false.
	Residual bool `flag:"residual"`
	// Norm is what hidden layers are normalised by: "none" (default), "layer", or
	// "batch" (over the rows that training sees).
	Norm string `flag:"norm"`
	// JumpingKnowledge computes the classes from all layers together; default false.
	JumpingKnowledge bool `flag:"jumping-knowledge"`
	// Bias adds a trainable vector to each layer; default true.
	Bias bool `flag:"bias"`
	// Activation follows every layer but the last: "relu" (default),
	// "leaky-relu", "elu", "tanh", "identity".
	Activation string `flag:"activation"`
	// Dropout is the probability with which a hidden value is dropped in
	// training, in [0,1); default 0.5. 0: none.
	Dropout float64 `flag:"dropout"`
	// AttentionDropout is the same for gat's attention coefficients; default 0.6.
	AttentionDropout float64 `flag:"attention-dropout"`
	// InputDropout is the same for the input features; default 0.5. 0 lets the
	// first aggregation be computed once and kept.
	InputDropout float64 `flag:"input-dropout"`
	// CacheGather keeps the first aggregation of features that nothing changes between
	// epochs; PruneRows computes, in training, only the rows that the loss can see. Both
	// default to true; without them an epoch does the work that other systems do.
	CacheGather bool `flag:"cache-gather"`
	PruneRows   bool `flag:"prune-rows"`

	// Epochs is the number of training epochs at most; default 200.
	Epochs int `flag:"epochs"`
	// Optimizer is "adam" (default), "adamw" or "sgd", with PyTorch's semantics.
	Optimizer string `flag:"optimizer"`
	// LR is the learning rate; default 0.01.
	LR float64 `flag:"lr"`
	// LRSchedule is how the learning rate moves with the epoch, by PyTorch's formulas:
	// "constant" (default), "cosine" (to 0 over Epochs), "step", "exponential".
	LRSchedule string `flag:"lr-schedule"`
	// LRStep is the number of epochs between the steps of schedule "step", which has
	// no default for it. Must be 0 for others.
	LRStep int `flag:"lr-step"`
	// LRGamma is the factor of each step of "step", by default 0.1, and of each epoch
	// of "exponential", by default 0.99. 0: the default. Must be 0 for others.
	LRGamma float64 `flag:"lr-gamma"`
	// Warmup is the number of epochs in which the learning rate rises, by equal steps,
	// to LR; the schedule begins after them. 0 (default) and 1: none.
	Warmup int `flag:"warmup"`
	// ClipNorm scales all gradients together down to this norm where theirs is larger.
	// 0 (default): never.
	ClipNorm float64 `flag:"clip-norm"`
	// Momentum is SGD's, in [0,1); default 0. Must be 0 for other optimisers.
	Momentum float64 `flag:"momentum"`
	// WeightDecay is the L2 penalty; default 5e-4. 0: none.
	WeightDecay float64 `flag:"weight-decay"`
	// WeightDecayScope says what decays: "first" (default: the first layer's
	// weights, as in the GCN paper), "weights" (all but biases), "all".
	WeightDecayScope string `flag:"weight-decay-scope"`
	// ClassWeights weighs the loss of each row by its label's class, or of several
	// labels a row, of the labels it has: "" (default: all 1), "balanced" (by how rare a
	// class is among training rows), or a file with one weight per class and line.
	ClassWeights string `flag:"class-weights"`
	// Seed fixes initial weights, dropout and random splits; default 0. Run k of
	// several uses Seed+k.
	Seed uint64 `flag:"seed"`
	// Runs trains that many times with consecutive seeds and reports mean and
	// deviation; default 1.
	Runs int `flag:"runs"`

	// Metric is what is measured, and what the best epoch is chosen by: "accuracy",
	// "micro-f1", "macro-f1", "roc-auc", or "" (default): accuracy, of several labels a
	// row micro-f1. Accuracy is reported beside the others.
	Metric string `flag:"metric"`
	// EvalEvery is the number of epochs between evaluations; default 1. The last
	// epoch is always evaluated.
	EvalEvery int `flag:"eval-every"`
	// Patience stops a run after so many epochs without a better validation
	// metric. 0 (default): never.
	Patience int `flag:"patience"`
	// TargetAccuracy stops a run once the validation metric has reached it, in
	// [0,1]. 0 (default): never.
	TargetAccuracy float64 `flag:"target-accuracy"`
	// MaxCost ends a run, with a checkpoint, once its bill has passed so many dollars;
	// the bill is looked at after each epoch. Of several runs it is their sum. 0
	// (default): never.
	MaxCost float64 `flag:"max-cost"`

	// Pipeline is "sync" (default; same bits however it is scheduled) or "async".
	Pipeline string `flag:"pipeline"`
	// Staleness is how many epochs an interval may run ahead of the slowest one.
	// 0 (default) lets none start epoch e+1 before all finished e. More hides
	// slow peers and costs accuracy. Must be 0 when Pipeline is sync.
	Staleness int `flag:"staleness"`
	// AsyncWait is the share of its time for which an async run lets cores that have
	// nothing else to do wait for rows and weights of the same epoch, before they go on
	// with older ones within the bound. 0: they never wait; 1: always, as in a sync run. Default 0.75.
	AsyncWait float64 `flag:"async-wait"`
	// Intervals is the number of vertex ranges that flow through the pipeline;
	// 0 (default) chooses by the size of the graph and the threads.
	Intervals int `flag:"intervals"`
	// Threads is the number of workers; 0 (default): one per core.
	Threads int `flag:"threads"`
	// Lambdas is how many Lambda workers mode lambda wants: a number, or "auto"
	// (default).
	Lambdas string `flag:"lambdas"`
	// LambdaMemory is the size of a worker in MB, 128 to 10240; default 1769, one
	// processor's worth. On AWS the deployed function's size holds.
	LambdaMemory int `flag:"lambda-memory"`
	// LambdaEndpoint is who is asked for workers: "local" (default), a service in this
	// process; "aws"; or the URL of another service.
	LambdaEndpoint string `flag:"lambda-endpoint"`
	// LambdaFunction is the worker's function; default "dorylus-lambda".
	LambdaFunction string `flag:"lambda-function"`
	// LambdaAddress is host:port under which workers reach this server; "" (default): a
	// free port of loopback, for a local service.
	LambdaAddress string `flag:"lambda-address"`
	// LambdaTransport is how tensors reach workers: "stream" (default; workers call this
	// server) or "inline" (in the payload of invocations, for a server that workers cannot
	// call).
	LambdaTransport string `flag:"lambda-transport"`
	// LambdaFallback is what happens where no worker can be had: "local" (default; this
	// server's own cores do the work, and say so) or "fail".
	LambdaFallback string `flag:"lambda-fallback"`
	// WirePrecision is that of floats between the server and workers: "fp32" (default,
	// every bit), "bf16", "fp16".
	WirePrecision string `flag:"wire-precision"`
	// Chaos injects faults into a local service, by seed; "" (default): none.
	Chaos string `flag:"chaos"`
	// Precision is "fp32" (default); with Mode gpu also "tf32", to which the operands of
	// products are rounded, or "bf16", in which rows are gathered too. Sums are in fp32.
	Precision string `flag:"precision"`
	// GPU names the GPUs of mode gpu by the driver's numbers, as "0" or "0,1"; several
	// share the graph. "auto" (default): the first that can be used, of several servers on
	// a machine to each its own.
	GPU string `flag:"gpu"`
	// GPUMemory is the most device memory to take of each: a share of what is free, default
	// "90%", or bytes with or without a unit ("12GiB").
	GPUMemory string `flag:"gpu-memory"`
	// GPUProducts makes the products of mode gpu: "own" (default), this program's kernels,
	// or "cublas", NVIDIA's library where it is there. Their last bits differ.
	GPUProducts string `flag:"gpu-products"`
	// Device is the kernel set: "auto" (default: the best this CPU has), "ref"
	// (plain Go, slow), "cpu", "cpu/scalar", "cpu/avx2", "cpu/avx512".
	Device string `flag:"device"`
	// Instance is the type of EC2 instance that the machine of this run is priced as,
	// with ":spot" for its spot price, or "none": no cost is computed. "" (default):
	// cost.DefaultInstance of the mode.
	Instance string `flag:"instance"`

	// OutDir is the folder RUN that gets events, summary and checkpoints. ""
	// (default): nothing is written.
	OutDir string `flag:"out"`
	// Resume goes on from the last checkpoint of a RUN, with its settings where
	// none are given.
	Resume string `flag:"resume"`
	// CheckpointEvery is the number of epochs between checkpoints. 0 (default):
	// only at the end and when interrupted. Needs OutDir.
	CheckpointEvery int `flag:"checkpoint-every"`
	// SpotNotice asks the metadata of the EC2 instance whether it is about to be taken
	// back, and then stops as SIGTERM does.
	SpotNotice bool `flag:"spot-notice"`
	// TaskEvents writes every task to events.jsonl, not only sums per epoch.
	TaskEvents bool `flag:"task-events"`
	// Progress is what is shown while training: "auto" (default: a line that
	// updates itself on a terminal, else plain), "plain", "json", "none".
	Progress string `flag:"progress"`
	// JSON prints the summary as one JSON object and nothing else on standard
	// output.
	JSON bool `flag:"json"`
	// DryRun checks settings and data and says what would be done.
	DryRun bool `flag:"dry-run"`
}

// DefaultConfig is the configuration of a run that is told nothing but its
// model: the settings of the model's paper, or of PyG's example, on citation graphs.
// An unknown model has the defaults of "gcn".
func DefaultConfig(model string) Config {
	c := Config{
		Bias: true, CacheGather: true, PruneRows: true, Dropout: 0.5, InputDropout: 0.5, AttentionDropout: 0.6, WeightDecay: 5e-4, SplitIndex: -1,
		Model: model, Hops: 2, Alpha: 0.1, AsyncWait: 0.75,
	}
	switch model {
	case "gat":
		c.Hidden, c.Activation, c.Dropout, c.InputDropout = 8, "elu", 0.6, 0.6
		c.LR, c.Epochs, c.WeightDecayScope = 0.005, 300, "all"
	case "appnp":
		c.Hidden, c.Hops = 64, 10
	case "sage", "gin":
		c.Hidden, c.WeightDecayScope = 64, "all"
	}
	return c.WithDefaults()
}

// WithDefaults is c with defaults in the place of zero values, where a zero
// value is not a setting of its own.
func (c Config) WithDefaults() Config {
	text := func(p *string, def string) {
		if *p == "" {
			*p = def
		}
	}
	count := func(p *int, def int) {
		if *p == 0 {
			*p = def
		}
	}
	text(&c.Mode, "cpu")
	text(&c.Data, "cora")
	text(&c.Model, "gcn")
	text(&c.Order, "auto")
	text(&c.Activation, "relu")
	text(&c.Optimizer, "adam")
	text(&c.LRSchedule, "constant")
	text(&c.WeightDecayScope, "first")
	text(&c.Aggregator, "mean")
	text(&c.Norm, "none")
	text(&c.Pipeline, "sync")
	text(&c.Lambdas, "auto")
	text(&c.LambdaEndpoint, "local")
	text(&c.LambdaFunction, "dorylus-lambda")
	text(&c.LambdaTransport, "stream")
	text(&c.LambdaFallback, "local")
	text(&c.WirePrecision, "fp32")
	text(&c.Precision, "fp32")
	text(&c.GPU, "auto")
	text(&c.GPUMemory, "90%")
	text(&c.GPUProducts, "own")
	text(&c.Device, "auto")
	text(&c.Progress, "auto")
	count(&c.LambdaMemory, 1769)
	count(&c.Layers, 2)
	count(&c.Hidden, 16)
	count(&c.Heads, 8)
	count(&c.OutHeads, 1)
	count(&c.Epochs, 200)
	count(&c.Runs, 1)
	count(&c.EvalEvery, 1)
	if c.LR == 0 {
		c.LR = 0.01
	}
	return c
}

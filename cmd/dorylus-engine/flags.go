package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dorylus/engine"
)

// Groups of train flags, in the order of the help.
const (
	groupData     = "Data"
	groupModel    = "Model"
	groupTraining = "Training"
	groupStopping = "Evaluation and stopping"
	groupPipeline = "Pipeline and hardware"
	groupOutput   = "Output"
)

var groups = []string{groupData, groupModel, groupTraining, groupStopping, groupPipeline, groupOutput}

// help says what a setting's flag does. Values in back quotes name the argument.
type help struct{ name, group, usage string }

// settingHelp has one line per field of engine.Config, in the order of the help.
var settingHelp = []help{
	{"data", groupData, "`GRAPH` to train on: cora (built in), the folder of a prepared store, a file or folder in a known format, or synth:..."},
	{"features", groupData, "features of a source that is not a store: " + list(engine.FeatureChoices) + " (default: row-normalize for Planetoid files, else none)"},
	{"order", groupData, "vertex order of a source that is not a store: " + list(engine.Orders)},
	{"split", groupData, "make a split: planetoid, per-class:20/30, random:60/20/20 (default: the data's own)"},
	{"split-file", groupData, "read splits from a JSON `FILE` with train, val and test vertices"},
	{"split-index", groupData, "which of several splits, from 0; -1: the first, with --runs another one in each run"},

	{"model", groupModel, list(engine.Models)},
	{"layers", groupModel, "number of layers"},
	{"hidden", groupModel, "width of the hidden layers; of each head for gat (gat: 8, sage and gin: 64)"},
	{"heads", groupModel, "gat: attention heads in all layers but the last, concatenated"},
	{"out-heads", groupModel, "gat: attention heads in the last layer, averaged"},
	{"aggregator", groupModel, "sage: " + list(engine.Aggregators) + " over in-neighbours"},
	{"hops", groupModel, "sgc, appnp: how often the neighbours are averaged (appnp: 10)"},
	{"alpha", groupModel, "appnp: share of the prediction itself in each hop"},
	{"residual", groupModel, "add each hidden layer's input to its output"},
	{"jumping-knowledge", groupModel, "compute the classes from all layers, which are all hidden ones then"},
	{"norm", groupModel, "normalisation of hidden layers: " + list(engine.Norms)},
	{"activation", groupModel, list(engine.Activations) + " (gat: elu)"},
	{"bias", groupModel, "add a trainable vector in each layer"},
	{"dropout", groupModel, "probability of dropping a hidden value in training (gat: 0.6)"},
	{"attention-dropout", groupModel, "gat: probability of dropping an attention coefficient"},
	{"input-dropout", groupModel, "probability of dropping an input feature; 0 lets the first aggregation be computed only once"},

	{"epochs", groupTraining, "train for at most so many epochs (gat: 300)"},
	{"optimizer", groupTraining, list(engine.Optimizers)},
	{"lr", groupTraining, "learning rate (gat: 0.005)"},
	{"lr-schedule", groupTraining, "learning rate by epoch: " + list(engine.LRSchedules) + "; cosine falls to 0 over --epochs"},
	{"lr-step", groupTraining, "epochs between the steps of --lr-schedule=step"},
	{"lr-gamma", groupTraining, "factor of each step (0: 0.1), or of each epoch of --lr-schedule=exponential (0: 0.99)"},
	{"warmup", groupTraining, "epochs in which the learning rate rises to --lr, before the schedule begins"},
	{"clip-norm", groupTraining, "scale all gradients together down to this norm; 0: never"},
	{"momentum", groupTraining, "momentum of --optimizer=sgd"},
	{"weight-decay", groupTraining, "L2 penalty"},
	{"weight-decay-scope", groupTraining, "what decays: first (weights of the first layer), weights, all (biases too) (gat, sage and gin: all)"},
	{"class-weights", groupTraining, "weights of the classes in the loss: balanced, or a `FILE` with one number per class and line (default: all 1)"},
	{"seed", groupTraining, "seed of initial weights, dropout and random splits"},
	{"runs", groupTraining, "train so many times, with consecutive seeds, and report mean and deviation"},

	{"metric", groupStopping, "what is measured and chosen by: " + list(engine.Metrics) + " (default: accuracy; of several labels a vertex micro-f1)"},
	{"eval-every", groupStopping, "epochs between evaluations"},
	{"patience", groupStopping, "stop after so many epochs without a better validation metric; 0: never"},
	{"target-accuracy", groupStopping, "stop at this validation metric, 0 to 1; 0: never"},
	{"spot-notice", groupStopping, "on EC2: stop with a checkpoint, as by SIGTERM, when the spot instance is about to be taken back"},
	{"max-cost", groupStopping, "stop with a checkpoint once the bill, looked at after each epoch, has passed so many dollars; 0: never"},

	{"mode", groupPipeline, "where tensor tasks run: cpu, gpu (rows live there, too), lambda"},
	{"pipeline", groupPipeline, "sync (exact, same bits every time) or async (bounded staleness)"},
	{"staleness", groupPipeline, "epochs that an interval may run ahead of the slowest, with --pipeline=async"},
	{"async-wait", groupPipeline, "share of its time that idle cores of an async run wait for fresh rows before they use older ones"},
	{"intervals", groupPipeline, "vertex ranges that flow through the pipeline; 0: by the size of the graph"},
	{"threads", groupPipeline, "workers; 0: one per core"},
	{"cache-gather", groupPipeline, "compute the first aggregation of features that stay the same only once"},
	{"prune-rows", groupPipeline, "compute in training only the rows that the loss can see"},
	{"precision", groupPipeline, "fp32; with --mode=gpu also tf32 (operands of products) or bf16 (gathered rows, too)"},
	{"gpu", groupPipeline, "with --mode=gpu: auto (the first that can be used), or the driver's numbers, as 0 or 0,1, of which a server of several takes one"},
	{"gpu-memory", groupPipeline, "with --mode=gpu: the most memory to take of each GPU, as 12GiB or a share of what is free"},
	{"gpu-products", groupPipeline, "with --mode=gpu: products by own kernels, or by cublas (NVIDIA's library, from the system or DORYLUS_CUBLAS)"},
	{"device", groupPipeline, "kernels: " + list(engine.Devices)},
	{"lambdas", groupPipeline, "with --mode=lambda: workers, a number or auto"},
	{"lambda-memory", groupPipeline, "size of a local worker in MB; 1769 is one processor"},
	{"lambda-endpoint", groupPipeline, "who is asked for workers: local (a service in this process), aws, or a `URL`"},
	{"lambda-function", groupPipeline, "the workers' function on AWS, its `NAME` or ARN"},
	{"lambda-address", groupPipeline, "`HOST:PORT` under which workers reach this server (default: a free port of loopback)"},
	{"lambda-transport", groupPipeline, "how tensors reach workers: stream (they call this server) or inline (in the payload of calls, up to 6 MB a task)"},
	{"lambda-fallback", groupPipeline, "where no worker can be had: local (this server's own cores do the work, and say so) or fail (exit code 75)"},
	{"wire-precision", groupPipeline, "of floats on the way to workers and back: fp32 (exact), bf16, fp16"},
	{"chaos", groupPipeline, "faults in the local service, by seed, as seed=7,crash=0.1 (see lambda serve --help)"},
	{"instance", groupPipeline, "EC2 `TYPE` that this machine is priced as (see dorylus-engine prices show), TYPE:spot, or none (default: c5n.2xlarge; gpu: p3.2xlarge)"},

	{"out", groupOutput, "folder `RUN` for events, summary and checkpoints (default: nothing is written)"},
	{"resume", groupOutput, "go on from the last checkpoint in `RUN`, with its settings where none are given"},
	{"checkpoint-every", groupOutput, "epochs between checkpoints; 0: only at the end and when interrupted"},
	{"task-events", groupOutput, "write every task to events.jsonl, not only sums"},
	{"progress", groupOutput, list(engine.ProgressStyles)},
	{"json", groupOutput, "print the summary as one JSON object on standard output, and nothing else"},
	{"dry-run", groupOutput, "check settings and data, say what would be done, and stop; --json has memory_plan then, a list where there are several GPUs"},
}

func list(words []string) string { return strings.Join(words, ", ") }

// settingValue is a setting as a flag.
type settingValue struct{ engine.Setting }

func (v settingValue) String() string {
	if v.Ptr == nil { // pflag asks a zero value whether the default is one
		return ""
	}
	return v.Text()
}

// Type is what help and messages call the argument.
func (v settingValue) Type() string {
	switch v.Setting.Type() {
	case "count":
		return "N"
	case "number":
		return "X"
	case "true|false":
		return "bool" // pflag shows no argument
	}
	return "string"
}

// configFlag names the file of settings.
const configFlag = "config"

// addSettings gives cmd a flag for every setting, with the defaults of a GCN.
func addSettings(cmd *cobra.Command) {
	c := engine.DefaultConfig("gcn")
	byName := map[string]engine.Setting{}
	for _, s := range c.Settings() {
		byName[s.Name] = s
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	for _, h := range settingHelp {
		f := fs.VarPF(settingValue{byName[h.name]}, h.name, "", h.usage)
		if byName[h.name].Type() == "true|false" {
			f.NoOptDefVal = "true"
		}
		inGroup(f, h.group)
	}
	fs.String(configFlag, "", "read settings from a YAML `FILE` of flag: value lines")
	inGroup(fs.Lookup(configFlag), groupOutput)
	complete(cmd, "mode", engine.Modes)
	complete(cmd, "model", engine.Models)
	complete(cmd, "activation", engine.Activations)
	complete(cmd, "aggregator", engine.Aggregators)
	complete(cmd, "norm", engine.Norms)
	complete(cmd, "optimizer", engine.Optimizers)
	complete(cmd, "lr-schedule", engine.LRSchedules)
	complete(cmd, "metric", engine.Metrics)
	complete(cmd, "weight-decay-scope", engine.WeightDecayScopes)
	complete(cmd, "pipeline", engine.Pipelines)
	complete(cmd, "precision", engine.Precisions)
	complete(cmd, "gpu-products", engine.GPUProducts)
	complete(cmd, "lambda-transport", engine.LambdaTransports)
	complete(cmd, "lambda-fallback", engine.LambdaFallbacks)
	complete(cmd, "wire-precision", engine.WirePrecisions)
	complete(cmd, "features", engine.FeatureChoices)
	complete(cmd, "order", engine.Orders)
	complete(cmd, "device", engine.Devices)
	complete(cmd, "progress", engine.ProgressStyles)
}

// complete offers words to the shell for a flag of cmd.
func complete(cmd *cobra.Command, flag string, words []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // registered twice, or no such flag
	}
}

const groupKey = "group"

func inGroup(f *pflag.Flag, group string) { f.Annotations = map[string][]string{groupKey: {group}} }

// groupedUsage prints how a command is called: as cobra does, but flags under
// headings.
func groupedUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "  %-12s %s\n", c.Name(), c.Short)
			}
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range slices.Concat([]string{groupCluster}, groups, []string{""}) {
		set := pflag.NewFlagSet(group, pflag.ContinueOnError)
		set.SortFlags = false
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if of := f.Annotations[groupKey]; len(of) == 0 && group == "" || len(of) > 0 && of[0] == group {
				set.AddFlag(f)
			}
		})
		if set.HasAvailableFlags() {
			title := group
			if group == "" {
				title = "Flags"
			}
			fmt.Fprintf(&b, "\n%s:\n%s", title, set.FlagUsagesWrapped(110))
		}
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

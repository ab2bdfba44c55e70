package sink

import (
	"encoding/json"

	"dorylus/engine"
)

// Summary is summary.json: a run in numbers. Accuracies are in [0,1] and null
// where there was nothing to measure on.
type Summary struct {
	Mode     string `json:"mode"`
	Model    string `json:"model"`
	Dataset  string `json:"dataset"`
	Seed     uint64 `json:"seed"`
	Vertices int    `json:"vertices"`
	Edges    int64  `json:"edges"`

	// EpochsRun counts training epochs, those before a resume included.
	EpochsRun Number `json:"epochs_run"`
	// BestEpoch is the number of epochs after which validation was best, the
	// first such on ties; without a validation set, the last evaluation's.
	BestEpoch Number `json:"best_epoch"`
	// Loss is the training loss of the last epoch, before its update.
	Loss Number `json:"loss"`
	// The accuracies are those after BestEpoch.
	TrainAcc Number `json:"train_acc"`
	ValAcc   Number `json:"val_acc"`
	TestAcc  Number `json:"test_acc"`
	// TestAccStd is the sample standard deviation (n-1) of TestAcc over Runs.
	TestAccStd *Number `json:"test_acc_std,omitempty"`
	Metric     string  `json:"metric"`
	// Where Metric is not "accuracy", what it measured after BestEpoch, which is best by
	// it; TestMetricStd as TestAccStd.
	TrainMetric   *Number `json:"train_metric,omitempty"`
	ValMetric     *Number `json:"val_metric,omitempty"`
	TestMetric    *Number `json:"test_metric,omitempty"`
	TestMetricStd *Number `json:"test_metric_std,omitempty"`

	// EpochSeconds is the median time of a training epoch, evaluation excluded.
	EpochSeconds Number `json:"epoch_seconds"`
	TotalSeconds Number `json:"total_seconds"`
	PeakMemory   int64  `json:"peak_memory_bytes"`
	// TaskSeconds is worker time by task kind, over all epochs: kinds of training
	// tasks, "WU" for weight updates, "eval" for evaluations.
	TaskSeconds map[string]Number `json:"task_seconds"`
	// Staleness counts rows read in gathers by how far they were behind what the
	// bound is about: max(0, age-1) for rows of age epochs. No key exceeds the bound.
	Staleness map[int]int64 `json:"staleness"`
	// RowAge counts the same reads by the age itself, in epochs.
	RowAge map[int]int64 `json:"row_age"`

	// Servers has the graph servers of a run on several, by rank, and behind them the parameter
	// servers; PeakMemory is then the largest of theirs. Servers[r].RowAgeFrom[s] is the part
	// of RowAge that r has read of s; where a run was resumed or restarted, since then. Of
	// several runs it is the first's.
	Servers []engine.ServerDone `json:"servers,omitempty"`

	// Moved are the bytes that have gone to Lambda workers and back; nil where there are
	// none. Wire tells them apart, of one run.
	Moved *Number       `json:"bytes_moved,omitempty"`
	Wire  *engine.Wired `json:"wire,omitempty"`

	// Cost has one number per part of the bill and their sum as "total", in dollars;
	// of several runs, means. "total" is null where something has no price.
	Cost map[string]Number `json:"cost_usd"`
	// CostNote says by what prices, of what date, and what is left out.
	CostNote string `json:"cost_note"`
	// Value is 1/(TotalSeconds·total); null where the total is not known.
	Value Number `json:"value"`

	WeightsSHA256     string `json:"weights_sha256"`
	PredictionsSHA256 string `json:"predictions_sha256"`
	// Reason says why training ended: "epochs", "patience", "target",
	// "max-cost", "interrupted", "failed"; "unfinished" if the process did not live to say.
	Reason string `json:"reason"`
	Error  string `json:"error,omitempty"`

	Pipeline  string `json:"pipeline"`
	Bound     int    `json:"staleness_bound"`
	Intervals int    `json:"intervals"`
	Threads   int    `json:"threads"`
	Device    string `json:"device"`
	// Emulated: all or a part of the run was on the emulated device of the tests, so that
	// times say nothing and there is no cost. GPUs, Precision and Products, "own" or "cublas
	// 12.8.4", are those of mode gpu.
	Emulated  bool         `json:"emulated,omitempty"`
	GPUs      []engine.GPU `json:"gpus,omitempty"`
	Precision string       `json:"precision,omitempty"`
	Products  string       `json:"gpu_products,omitempty"`
	Version   string       `json:"version"`

	Runs []Summary `json:"runs,omitempty"`
}

// otherMetric says that s has a metric besides the accuracy.
func (s *Summary) otherMetric() bool { return s.TestMetric != nil }

// chosen is what the best epoch was chosen by: the metric on validation rows.
func (s *Summary) chosen() Number {
	if s.otherMetric() {
		return *s.ValMetric
	}
	return s.ValAcc
}

// JSON is s as indented JSON with a line break at the end.
func (s Summary) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

package sink

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"dorylus/engine"
)

// Words is s for people: the same facts as the JSON.
func (s Summary) Words() string {
	var b strings.Builder
	if len(s.Runs) > 0 {
		s.wordsOfRuns(&b)
	} else {
		s.wordsOfRun(&b)
	}
	if s.Emulated {
		fmt.Fprintf(&b, "Time       %s\n", engine.EmulatedNote)
	} else {
		fmt.Fprintf(&b, "Time       %s per epoch (median), %s in all; workers spent %s\n",
			seconds(s.EpochSeconds), seconds(s.TotalSeconds), s.taskWords())
	}
	if s.Pipeline == "async" {
		fmt.Fprintf(&b, "Staleness  %s (bound %d)\n", histogram(s.Staleness), s.Bound)
		if len(s.Runs) == 0 {
			b.WriteString(s.pairs("           "))
		}
	}
	fmt.Fprintf(&b, "Memory     %s at most\n", size(s.PeakMemory))
	s.gpuWords(&b)
	s.serverWords(&b)
	s.wireWords(&b)
	fmt.Fprintf(&b, "Cost       %s\n", s.costWords())
	fmt.Fprintf(&b, "SHA-256    weights %s, predictions %s\n", short(s.WeightsSHA256), short(s.PredictionsSHA256))
	return b.String()
}

// serverWords says what several graph servers have sent to each other.
func (s Summary) serverWords(b *strings.Builder) {
	if len(s.Servers) == 0 {
		return
	}
	if s.Servers[0].Role == engine.DeviceRole {
		s.deviceWords(b)
		return
	}
	var values, sent, params, least, most int64
	graphs, others := 0, 0
	for _, e := range s.Servers {
		if e.Role == engine.ParamRole {
			others++
			most = max(most, e.PeakMem)
			continue
		}
		if graphs++; graphs == 1 || e.PeakMem < least {
			least = e.PeakMem
		}
		values, sent, params = values+e.RowValues, sent+e.RowBytes+e.RowFraming, params+e.ParamsSent+e.ParamsReceived
	}
	fmt.Fprintf(b, "Servers    %d for the graph, %s of memory at least; rows of %s to each other in %s on the wire, %s to and from parameter servers\n",
		graphs, size(least), size(values), size(sent), size(params))
	if others > 0 {
		fmt.Fprintf(b, "           %d for parameters, %s of memory at most\n", others, size(most))
	}
}

// deviceWords says what several devices have given to each other.
func (s Summary) deviceWords(b *strings.Builder) {
	var values, peer int64
	for _, e := range s.Servers {
		values, peer = values+e.RowValues, peer+e.RowPeer
	}
	fmt.Fprintf(b, "Devices    %d; rows of %s to each other, %s of it without the host between\n", len(s.Servers), size(values), size(peer))
}

// wireWords says what went to Lambda workers and back.
func (s Summary) wireWords(b *strings.Builder) {
	w := s.Wire
	switch {
	case s.Moved == nil:
	case w == nil:
		fmt.Fprintf(b, "Wire       %s to workers and back\n", size(int64(*s.Moved)))
	default:
		fmt.Fprintf(b, "Wire       %s to workers (of it %s that stay there, weights %s), %s back\n", size(w.Sent), size(w.Shards), size(w.Weights), size(w.Received))
		fmt.Fprintf(b, "           an epoch plans %s, naive would be %s: fusion %s, residency %s, rematerialisation %s, order of products %s, merged gradients %s\n",
			size(w.Planned), size(w.Naive), saved(w.Fusion), saved(w.Residency), saved(w.Remade), saved(w.Order), saved(w.Merged))
	}
}

// saved is a difference in bytes, as what it takes off.
func saved(n int64) string {
	if n < 0 {
		return "+" + size(-n)
	}
	return "-" + size(n)
}

func (s Summary) wordsOfRun(b *strings.Builder) {
	fmt.Fprintf(b, "Trained    %s on %s (%s vertices, %s edges) in %s mode on %s, seed %d: %s epochs, %s\n",
		s.Model, s.Dataset, thousands(int64(s.Vertices)), thousands(s.Edges), s.Mode, s.Device, s.Seed,
		count(s.EpochsRun), s.reasonWords())
	after := fmt.Sprintf(" after epoch %s%s", count(s.BestEpoch), s.bestWords())
	loss := fmt.Sprintf("; loss %s at the end", digits(s.Loss))
	if s.otherMetric() {
		fmt.Fprintf(b, "%-10s test %s%s; train %s%s\n", metricWord(s.Metric), percent(*s.TestMetric), after, percent(*s.TrainMetric), loss)
		fmt.Fprintf(b, "Accuracy   test %s, val %s, train %s\n", percent(s.TestAcc), percent(s.ValAcc), percent(s.TrainAcc))
		return
	}
	fmt.Fprintf(b, "Accuracy   test %s%s; train %s%s\n", percent(s.TestAcc), after, percent(s.TrainAcc), loss)
}

// metricWord is a metric's name at the head of a line.
func metricWord(name string) string {
	switch name {
	case "roc-auc":
		return "ROC-AUC"
	case "micro-f1":
		return "Micro-F1"
	case "macro-f1":
		return "Macro-F1"
	}
	return name
}

func (s Summary) wordsOfRuns(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "run\tseed\tepochs\tbest\tloss\ttrain\tval\ttest\tseconds\t")
	for i, r := range s.Runs {
		train, val, test := r.TrainAcc, r.ValAcc, r.TestAcc
		if s.otherMetric() {
			train, val, test = *r.TrainMetric, *r.ValMetric, *r.TestMetric
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", i, r.Seed, count(r.EpochsRun), count(r.BestEpoch),
			digits(r.Loss), percent(train), percent(val), percent(test), seconds(r.TotalSeconds))
	}
	w.Flush()
	fmt.Fprintf(b, "Trained    %s on %s (%s vertices, %s edges) in %s mode on %s, %d runs from seed %d\n",
		s.Model, s.Dataset, thousands(int64(s.Vertices)), thousands(s.Edges), s.Mode, s.Device, len(s.Runs), s.Seed)
	const means = "means, each after its run's best validation epoch"
	if s.otherMetric() {
		fmt.Fprintf(b, "%-10s test %s%s, val %s, train %s: %s, as in the table\n", metricWord(s.Metric),
			percent(*s.TestMetric), deviation(s.TestMetricStd), percent(*s.ValMetric), percent(*s.TrainMetric), means)
	}
	fmt.Fprintf(b, "Accuracy   test %s%s, val %s, train %s: %s\n",
		percent(s.TestAcc), deviation(s.TestAccStd), percent(s.ValAcc), percent(s.TrainAcc), means)
}

func deviation(std *Number) string {
	if std == nil {
		return ""
	}
	return fmt.Sprintf(" ± %.2f (sample standard deviation)", 100*float64(*std))
}

// bestWords says why that epoch.
func (s Summary) bestWords() string {
	if !s.chosen().Known() {
		return ", the last evaluation (there is no validation set)"
	}
	return fmt.Sprintf(", the best in validation (%s)", percent(s.chosen()))
}

func (s Summary) reasonWords() string {
	switch s.Reason {
	case "epochs":
		return "as asked for"
	case "patience":
		return "stopped because validation got no better"
	case "target":
		return "stopped because the target accuracy was reached"
	case "max-cost":
		return "stopped because --max-cost was reached"
	case "failed":
		return "failed: " + s.Error
	}
	return s.Reason
}

// taskWords lists worker time by kind.
func (s Summary) taskWords() string {
	var parts []string
	for _, k := range SortedKinds(s.TaskSeconds) {
		if s.TaskSeconds[k] > 0 {
			parts = append(parts, k+" "+seconds(s.TaskSeconds[k]))
		}
	}
	return strings.Join(parts, ", ")
}

func percent(n Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n))
}

func digits(n Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf("%.4f", float64(n))
}

func count(n Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf("%.6g", float64(n))
}

// seconds is a time with three digits: "12.3 ms", "1.23 s", "2m3.4s".
func seconds(n Number) string {
	x := float64(n)
	switch {
	case !n.Known():
		return "-"
	case x == 0:
		return "0 s"
	case x < 1e-3:
		return fmt.Sprintf("%.3g µs", x*1e6)
	case x < 1:
		return fmt.Sprintf("%.3g ms", x*1e3)
	case x < 60:
		return fmt.Sprintf("%.3g s", x)
	}
	return time.Duration(x * 1e9).Round(time.Second).String()
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// thousands groups digits: 13,264.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func short(sha string) string {
	if len(sha) > 16 {
		return sha[:16] + "…"
	}
	if sha == "" {
		return "-"
	}
	return sha
}

// histogram is "0: 120 (75.0 %), 1: 40 (25.0 %)".
func histogram(h map[int]int64) string {
	var total int64
	for _, n := range h {
		total += n
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(h)) {
		parts = append(parts, fmt.Sprintf("%d: %s (%.1f %%)", k, thousands(h[k]), 100*float64(h[k])/float64(total)))
	}
	if parts == nil {
		return "no gathers"
	}
	return strings.Join(parts, ", ")
}

// SortedKinds lists task kinds in the order of an epoch: forward, backward,
// update, evaluation.
func SortedKinds(tasks map[string]Number) []string {
	rank := func(k string) int {
		switch {
		case k == "eval":
			return 3
		case k == "WU":
			return 2
		case strings.HasPrefix(k, "∇"):
			return 1
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(tasks), func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

package sink

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
)

// Merge sums up several runs: numbers are means; TestAccStd and
// TestMetricStd are sample standard deviations, dividing by n-1; peak memory is the largest; histograms
// are added up; a checksum is that of the runs' checksums, one per line. Values
// that a run did not measure are left out of the mean. One run stays itself.
func Merge(runs []Summary) Summary {
	if len(runs) == 1 {
		return runs[0]
	}
	if len(runs) == 0 {
		return NewTally().Summary()
	}
	s := runs[0]
	s.Runs = runs
	for _, f := range []struct {
		to  *Number
		get func(*Summary) Number
	}{
		{&s.EpochsRun, func(r *Summary) Number { return r.EpochsRun }},
		{&s.BestEpoch, func(r *Summary) Number { return r.BestEpoch }},
		{&s.Loss, func(r *Summary) Number { return r.Loss }},
		{&s.TrainAcc, func(r *Summary) Number { return r.TrainAcc }},
		{&s.ValAcc, func(r *Summary) Number { return r.ValAcc }},
		{&s.TestAcc, func(r *Summary) Number { return r.TestAcc }},
		{&s.EpochSeconds, func(r *Summary) Number { return r.EpochSeconds }},
		{&s.TotalSeconds, func(r *Summary) Number { return r.TotalSeconds }},
	} {
		mean, _ := meanStd(runs, f.get)
		*f.to = mean
	}
	_, std := meanStd(runs, func(r *Summary) Number { return r.TestAcc })
	s.TestAccStd = &std
	s.mergeMetric(runs)
	s.mergeTasks(runs)
	s.mergeCost(runs)
	s.mergeMoved(runs)
	for _, r := range runs[1:] {
		s.PeakMemory = max(s.PeakMemory, r.PeakMemory)
		if r.Reason != s.Reason {
			s.Reason = "mixed"
		}
	}
	s.WeightsSHA256 = digest(runs, func(r *Summary) string { return r.WeightsSHA256 })
	s.PredictionsSHA256 = digest(runs, func(r *Summary) string { return r.PredictionsSHA256 })
	return s
}

// mergeMetric takes the means of a metric that all runs have.
func (s *Summary) mergeMetric(runs []Summary) {
	for i := range runs {
		if !runs[i].otherMetric() || runs[i].Metric != s.Metric {
			s.TrainMetric, s.ValMetric, s.TestMetric = nil, nil, nil
			return
		}
	}
	train, _ := meanStd(runs, func(r *Summary) Number { return *r.TrainMetric })
	val, _ := meanStd(runs, func(r *Summary) Number { return *r.ValMetric })
	test, std := meanStd(runs, func(r *Summary) Number { return *r.TestMetric })
	s.TrainMetric, s.ValMetric, s.TestMetric, s.TestMetricStd = &train, &val, &test, &std
}

// mergeMoved takes the mean of the bytes of runs that have moved some.
func (s *Summary) mergeMoved(runs []Summary) {
	s.Moved, s.Wire = nil, nil
	mean, _ := meanStd(runs, func(r *Summary) Number {
		if r.Moved == nil {
			return Number(math.NaN())
		}
		return *r.Moved
	})
	if mean.Known() {
		s.Moved = &mean
	}
}

func (s *Summary) mergeTasks(runs []Summary) {
	s.TaskSeconds, s.Staleness, s.RowAge = map[string]Number{}, map[int]int64{}, map[int]int64{}
	for _, r := range runs {
		for k, x := range r.TaskSeconds {
			s.TaskSeconds[k] += x
		}
		for k, n := range r.Staleness {
			s.Staleness[k] += n
		}
		for k, n := range r.RowAge {
			s.RowAge[k] += n
		}
	}
	for k := range s.TaskSeconds {
		s.TaskSeconds[k] /= Number(len(runs))
	}
}

// meanStd is the mean and the sample standard deviation of the known values;
// the deviation of fewer than two is NaN.
func meanStd(runs []Summary, get func(*Summary) Number) (mean, std Number) {
	var x []float64
	for i := range runs {
		if n := get(&runs[i]); n.Known() {
			x = append(x, float64(n))
		}
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	m := sum / float64(len(x))
	squares := 0.0
	for _, v := range x {
		squares += (v - m) * (v - m)
	}
	if len(x) < 2 {
		return Number(m), Number(math.NaN())
	}
	return Number(m), Number(math.Sqrt(squares / float64(len(x)-1)))
}

// digest is the SHA-256 of the runs' checksums, one per line; "" if one lacks it.
func digest(runs []Summary, get func(*Summary) string) string {
	var b strings.Builder
	for i := range runs {
		sum := get(&runs[i])
		if sum == "" {
			return ""
		}
		b.WriteString(sum + "\n")
	}
	h := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(h[:])
}

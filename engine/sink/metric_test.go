package sink

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"dorylus/engine"
)

// another is a run of two epochs measured by ROC-AUC, best after the first although the
// accuracy is best after the second.
func another() []engine.Event {
	return []engine.Event{
		start(2, 0),
		engine.EpochDone{Epoch: 0, Loss: 1.5, Took: 0.01, LR: 0.5, GradNorm: 3},
		engine.Evaluated{Epoch: 0, Metric: "roc-auc", Train: 0.9, Val: 0.8, Test: 0.75, TrainAcc: 0.6, ValAcc: 0.5, TestAcc: 0.4},
		engine.EpochDone{Epoch: 1, Loss: 1.25, Took: 0.01, LR: 0.25, GradNorm: 2},
		engine.Evaluated{Epoch: 1, Metric: "roc-auc", Train: 0.95, Val: 0.7, Test: 0.65, TrainAcc: 0.8, ValAcc: 0.9, TestAcc: 0.7},
		engine.Classes{Epoch: 0, Names: []string{"no", "yes"}, Confusion: [][]int64{{5, 1}, {2, 4}}, Rows: 12},
		done("epochs"),
	}
}

func TestSummaryKeepsAccuracyBesideTheMetric(t *testing.T) {
	s := summarise(another()...)
	data, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `
  "best_epoch": 1,
  "loss": 1.25,
  "train_acc": 0.6,
  "val_acc": 0.5,
  "test_acc": 0.4,
  "metric": "roc-auc",
  "train_metric": 0.9,
  "val_metric": 0.8,
  "test_metric": 0.75,
`
	if !strings.Contains(string(data), want) {
		t.Errorf("got\n%s\nwant it to contain%s", data, want)
	}
	if got := s.Words(); !strings.Contains(got, "\nROC-AUC    test 75.00 % after epoch 1, the best in validation (80.00 %); train 90.00 %; loss 1.2500 at the end\n"+
		"Accuracy   test 40.00 %, val 50.00 %, train 60.00 %\n") {
		t.Errorf("in words:\n%s", got)
	}
}

func TestMergeOfAnotherMetric(t *testing.T) {
	a, b := summarise(another()...), summarise(another()...)
	x, y := Number(0.7), Number(0.3)
	b.TestMetric, b.ValMetric, b.TestAcc = &x, &y, 0.5
	got := Merge([]Summary{a, b})
	if math.Abs(float64(*got.TestMetric)-0.725) > 1e-12 || math.Abs(float64(*got.ValMetric)-0.55) > 1e-12 || *got.TrainMetric != 0.9 ||
		math.Abs(float64(*got.TestMetricStd)-0.05/math.Sqrt2) > 1e-12 || math.Abs(float64(got.TestAcc)-0.45) > 1e-12 {
		t.Errorf("test %v ± %v, val %v, train %v, test accuracy %v; want 0.725 ± 0.0354, 0.55, 0.9, 0.45",
			*got.TestMetric, *got.TestMetricStd, *got.ValMetric, *got.TrainMetric, got.TestAcc)
	}
	if *a.TestMetric != 0.75 {
		t.Errorf("merging changed a run: %v", *a.TestMetric)
	}
	const words = "" +
		"    1     7       2     1  1.2500  90.00 %  30.00 %  70.00 %    2.5 s\n" +
		"Trained    gcn on cora (2,708 vertices, 10,556 edges) in cpu mode on cpu/avx2, 2 runs from seed 7\n" +
		"ROC-AUC    test 72.50 % ± 3.54 (sample standard deviation), val 55.00 %, train 90.00 %: means, each after its run's best validation epoch, as in the table\n" +
		"Accuracy   test 45.00 % ± 7.07 (sample standard deviation), val 50.00 %, train 60.00 %: means, each after its run's best validation epoch\n"
	if s := got.Words(); !strings.Contains(s, words) {
		t.Errorf("got\n%s\nwant it to contain\n%s", s, words)
	}
	plain := summarise(script()...)
	if got := Merge([]Summary{a, plain}); got.TestMetric != nil || got.TestMetricStd != nil {
		t.Errorf("the mean of two metrics is %v", *got.TestMetric)
	}
}

func TestProgressNamesTheMetric(t *testing.T) {
	compare(t, show(Plain, nil, another()...), strings.Replace(opening, "3 epochs", "2 epochs", 1)+
		`epoch 1/2  loss 1.5000  roc-auc  train 90.00 %  val 80.00 %  test 75.00 %  10 ms/epoch  50 ms left
epoch 2/2  loss 1.2500  roc-auc  train 95.00 %  val 70.00 %  test 65.00 %  10 ms/epoch
`)
	got := show(JSONed, nil, another()...)
	const want = `{"epoch":1,"epochs":2,"loss":1.5,"train_acc":0.6,"val_acc":0.5,"test_acc":0.4,` +
		`"metric":"roc-auc","train_metric":0.9,"val_metric":0.8,"test_metric":0.75,"epoch_seconds":0.01}` + "\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to start with\n%s", got, want)
	}
}

func TestTensorBoardOfAnotherMetric(t *testing.T) {
	var b bytes.Buffer
	tb := NewTensorBoard(&b, clock(), nil)
	send(tb, another()[:3]...)
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	compare(t, scalars(t, b.Bytes()), `brain.Event:2
1 loss/train 1.5
1 time/epoch_seconds 0.01
1 lr 0.5
1 grad_norm 3
1 roc-auc/train 0.9
1 roc-auc/val 0.8
1 roc-auc/test 0.75
1 acc/train 0.6
1 acc/val 0.5
1 acc/test 0.4
1 loss/val 0
`)
}

func TestTablesOfClasses(t *testing.T) {
	tally := NewTally()
	send(tally, another()...)
	const want = `Train, val and test are roc-auc.
  epoch    loss    train      val     test  seconds
      1  1.5000  90.00 %  80.00 %  75.00 %    10 ms best
      2  1.2500  95.00 %  70.00 %  65.00 %    10 ms

12 test rows by class, with the weights after epoch 1:
  class  rows  predicted  precision  recall      F1
     no     6          7     0.7143  0.8333  0.7692
    yes     6          5     0.8000  0.6667  0.7273
macro F1 0.7483, micro F1 0.7500, accuracy 0.7500

Classes (lines) and what was predicted (columns):
  class  #  0  1
     no  0  5  1
    yes  1  2  4

`
	if got := tally.Tables(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to start with\n%s", got, want)
	}
	send(tally, engine.Classes{Epoch: 1, TP: []int64{1, 0}, FP: []int64{0, 1}, FN: []int64{0, 0}, Exact: 1, Rows: 2})
	if got := tally.Tables(); !strings.Contains(got, "rows with all labels right 0.5000\n\n") || strings.Contains(got, "columns") {
		t.Errorf("of several labels a row:\n%s", got)
	}
	for _, e := range []engine.Classes{{Confusion: [][]int64{{1}, {2}}}, {TP: []int64{1}, FP: []int64{1}}} {
		send(tally, e)
		if got := tally.Tables(); !strings.Contains(got, "do not fit together") {
			t.Errorf("%+v:\n%s", e, got)
		}
	}
	send(tally, start(4, 2)) // the resumed run has not ended
	if got := tally.Tables(); strings.Contains(got, "by class") || strings.Contains(got, "fit together") {
		t.Errorf("classes of the segment before are still shown:\n%s", got)
	}
}

func TestNewEventsSurviveTheFile(t *testing.T) {
	events := append(another(), engine.Classes{TP: []int64{1}, FP: []int64{2}, FN: []int64{3}, Rows: 5})
	var b bytes.Buffer
	j := NewJSONL(&b, false, nil)
	send(j, events...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, `{"event":"classes","epoch":0,"names":["no","yes"],"confusion":[[5,1],[2,4]],"rows":12}`+"\n") ||
		!strings.Contains(text, `{"event":"epoch","epoch":0,"loss":1.5,"seconds":0.01,"update_seconds":0,"lr":0.5,"grad_norm":3}`+"\n") {
		t.Errorf("the file:\n%s", text)
	}
	var got log
	if err := ReadEvents(&b, &got); err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if !reflect.DeepEqual(got[i], events[i]) {
			t.Errorf("event %d: got %#v, want %#v", i, got[i], events[i])
		}
	}
}

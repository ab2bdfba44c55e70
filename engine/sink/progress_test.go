package sink

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/task"
)

// show runs events through a Progress.
func show(style Style, change func(*Progress), events ...engine.Event) string {
	var b bytes.Buffer
	p := NewProgress(&b, style, clock())
	if change != nil {
		change(p)
	}
	send(p, events...)
	return b.String()
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const opening = `gcn on cora: 2,708 vertices, 10,556 edges, 1433 features, 7 classes; 140/500/1,000 rows to train/validate/test
3 epochs, seed 7, 23,063 parameters; cpu mode on cpu/avx2, async with staleness 1, 2 intervals, 2 threads
`

func TestPlainProgress(t *testing.T) {
	compare(t, show(Plain, nil, script()...), opening+
		`epoch 1/3  loss 1.9000  train 90.00 %  val 50.00 %  test 40.00 %  10 ms/epoch  100 ms left
epoch 2/3  loss 1.5000  train 91.00 %  val 75.00 %  test 70.00 %  20 ms/epoch  50 ms left
epoch 3/3  loss 1.2500  train 92.00 %  val 75.00 %  test 80.00 %  30 ms/epoch
`)
}

func TestPlainProgressHasAboutTwentyLines(t *testing.T) {
	for _, epochs := range []int{1, 7, 20, 39, 200, 10000} {
		events := []engine.Event{start(epochs, 0)}
		for e := range epochs {
			events = append(events, engine.EpochDone{Epoch: e}, engine.Evaluated{Epoch: e})
		}
		got := show(Plain, nil, append(events, done("epochs"))...)
		lines := strings.Split(strings.TrimSpace(got), "\n")[2:]
		if len(lines) > plainLines+2 || !strings.HasPrefix(lines[len(lines)-1], fmt.Sprintf("epoch %d/%d", epochs, epochs)) {
			t.Errorf("%d epochs: %d lines, the last is %q", epochs, len(lines), lines[len(lines)-1])
		}
	}
}

func TestProgressShowsTheLastEpochOfAStoppedRun(t *testing.T) {
	for _, style := range []Style{Plain, Line} {
		events := []engine.Event{start(1000, 0)}
		for e := range 8 {
			events = append(events, engine.EpochDone{Epoch: e}, engine.Evaluated{Epoch: e})
		}
		got := show(style, nil, append(events, done("patience"))...)
		if !strings.Contains(got, "epoch    8/1000") || !strings.HasSuffix(got, "\n") {
			t.Errorf("style %s: the last epoch is missing or its line does not end in\n%q", style, got)
		}
	}
}

func TestProgressBetweenEvaluations(t *testing.T) {
	s := start(3, 0)
	s.ValRows = 0
	got := show(Plain, nil, s, engine.EpochDone{Loss: 2}, engine.Evaluated{Train: 0.5, Test: 0.25}, engine.EpochDone{Epoch: 1, Loss: 1, Took: 1}, done("failed"))
	if want := "epoch 2/3  loss 1.0000  train 50.00 %  test 25.00 % (of epoch 1)  1 s/epoch  50 ms left\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant it to end with\n%s", got, want)
	}
}

func TestBriefProgressHasOneLinePerRun(t *testing.T) {
	compare(t, show(Plain, func(p *Progress) { p.Brief = true }, append(script(), script()...)...), opening+
		`seed 7  epoch 3/3  loss 1.2500  train 92.00 %  val 75.00 %  test 80.00 %  30 ms/epoch
seed 7  epoch 3/3  loss 1.2500  train 92.00 %  val 75.00 %  test 80.00 %  30 ms/epoch
`)
}

func TestLineProgressUpdatesInPlace(t *testing.T) {
	got := show(Line, func(p *Progress) { p.Columns = 30 }, script()...)
	want := opening + "\repoch 1/3  loss 1.9000  train\repoch 2/3  loss 1.5000  train\repoch 3/3  loss 1.2500  train\n"
	if got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestJSONProgress(t *testing.T) {
	compare(t, show(JSONed, nil, start(2, 0), engine.EpochDone{Loss: 1.5, Took: 0.5}, engine.Evaluated{Train: 1, Val: math.NaN(), Test: 0.5},
		engine.Warned{Message: "slow"}, engine.EpochDone{Epoch: 1, Loss: math.Inf(1), Took: 0.25}, done("epochs")),
		`{"epoch":1,"epochs":2,"loss":1.5,"train_acc":1,"val_acc":null,"test_acc":0.5,"epoch_seconds":0.5}
{"note":"warning: slow"}
{"epoch":2,"epochs":2,"loss":null,"epoch_seconds":0.25}
`)
}

func TestNoProgressStillWarns(t *testing.T) {
	events := append(script(), engine.Warned{Message: "disk is slow"},
		engine.Retried{Task: task.Task{ID: task.ID{Epoch: 1, Interval: 2, Step: 3}, Kind: task.AV, Layer: 1}, Attempt: 2, Cause: "gone"})
	compare(t, show(None, nil, events...), "warning: disk is slow\nretry: AV1 e1/i2/s3, attempt 2: gone\n")
}

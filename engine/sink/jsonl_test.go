package sink

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/task"
)

// log keeps events.
type log []engine.Event

func (l *log) Event(e engine.Event) { *l = append(*l, e) }

func TestJSONLText(t *testing.T) {
	var b bytes.Buffer
	j := NewJSONL(&b, false, nil)
	send(j, start(2, 0))
	send(j, epoch(0, 1.5, 0.25, math.NaN())...)
	send(j, engine.Retried{Task: task.Task{Kind: task.AV}, Attempt: 2, Cause: "worker 3 died"},
		engine.Warned{Message: "loss is rising"}, engine.Checkpointed{Epoch: 1, Path: "ckpt/1", Bytes: 10, Took: 0.5}, done("patience"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"event":"run_start","time":"2026-11-30T12:00:00Z","mode":"cpu","model":"gcn","dataset":"cora","seed":7,"vertices":2708,"edges":10556,"features":1433,"classes":7,"train_rows":140,"val_rows":500,"test_rows":1000,"parameters":23063,"pipeline":"async","staleness_bound":1,"intervals":2,"threads":2,"epochs":2,"first_epoch":0,"device":"cpu/avx2","version":"v1"}
{"event":"tasks","epoch":0,"nanoseconds":{"AV":2000000,"GA":3000000,"∇GA":1500000},"count":{"AV":1,"GA":1,"∇GA":1},"age":[5,2,1]}
{"event":"epoch","epoch":0,"loss":1.5,"seconds":0.01,"update_seconds":0.001}
{"event":"tasks","epoch":0,"nanoseconds":{"eval":4000000},"count":{"eval":1}}
{"event":"eval","epoch":0,"metric":"accuracy","train":0.9,"val":0.25,"test":null,"val_loss":1.5,"best":false,"seconds":0.005}
{"event":"retry","task":{"Epoch":0,"Interval":0,"Step":0,"Kind":1,"Dir":0,"Layer":0},"attempt":2,"cause":"worker 3 died"}
{"event":"warning","message":"loss is rising"}
{"event":"checkpoint","epoch":1,"path":"ckpt/1","bytes":10,"seconds":0.5}
{"event":"run_done","reason":"patience","epochs_run":3,"total_seconds":2.5,"peak_memory_bytes":3145728,"weights_sha256":"` + strings.Repeat("ab", 32) + `","predictions_sha256":"` + strings.Repeat("cd", 32) + `"}
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEventsSurviveTheFile(t *testing.T) {
	var b bytes.Buffer
	j := NewJSONL(&b, true, nil)
	events := append(script(), engine.Warned{Message: "äöü \" \n"}, engine.EpochDone{Epoch: 4, Loss: math.Pi / 3})
	send(j, events...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var got log
	if err := ReadEvents(&b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(events) {
		t.Fatalf("%d events came back of %d", len(got), len(events))
	}
	for i := range events {
		if !reflect.DeepEqual(got[i], events[i]) {
			t.Errorf("event %d: got %#v, want %#v", i, got[i], events[i])
		}
	}
}

func TestNaNSurvivesTheFile(t *testing.T) {
	data, err := Marshal(engine.Evaluated{Val: math.NaN(), Test: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.(engine.Evaluated); !math.IsNaN(got.Val) || got.Test != 0.5 {
		t.Errorf("%s came back as %+v", data, got)
	}
}

func TestReadEventsNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"{\"event\":\"warning\",\"message\":\"a\"}\n{]\n": "line 2: invalid character",
		"{\"event\":\"party\"}\n":                         `line 1: unknown event "party"; was it written by a newer version?`,
		"{\"event\":3}\n":                                 `line 1: its "event" is not a word`,
		"{\"event\":\"epoch\",\"epoch\":\"x\"}\n":         "line 1: json: cannot unmarshal string",
	} {
		err := ReadEvents(strings.NewReader(text), &log{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s...", text, err, want)
		}
	}
}

func TestOpenJSONLCutsAnIncompleteLine(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	line := "{\"event\":\"warning\",\"message\":\"a\"}\n"
	for name, test := range map[string]struct{ before, kept string }{
		"new file":           {"", ""},
		"complete":           {line, line},
		"cut short":          {line + `{"event":"epo`, line},
		"only a part":        {`{"event"`, ""},
		"a long part":        {line + long, line},
		"nothing but a tail": {long, ""},
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, []byte(test.before), 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJSONL(path, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		send(j, engine.Warned{Message: "b"})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := test.kept + "{\"event\":\"warning\",\"message\":\"b\"}\n"; string(got) != want {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
	}
}

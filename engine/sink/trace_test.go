package sink

import (
	"bytes"
	"encoding/json"
	"testing"

	"dorylus/engine"
)

func TestTrace(t *testing.T) {
	var b bytes.Buffer
	tr := NewTrace(&b, 3, nil)
	events := append([]engine.Event{start(1, 0)}, epoch(0, 1.5, 0.25, 0.5)...)
	send(tr, append(events, engine.Checkpointed{Epoch: 1, Bytes: 9}, done("epochs"))...)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `{"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":0,"ts":0,"args":{"name":"graph server 0: gcn on cora, cpu/avx2"}},
{"name":"thread_name","ph":"M","pid":1,"tid":2,"ts":0,"args":{"name":"worker 1"}},
{"name":"GA","ph":"X","pid":1,"tid":2,"ts":0,"dur":3000,"args":{"epoch":0,"interval":1,"layer":1}},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"ts":0,"args":{"name":"worker 0"}},
{"name":"AV","ph":"X","pid":1,"tid":1,"ts":3000,"dur":2000,"args":{"epoch":0,"interval":1,"layer":1}},
{"name":"∇GA","ph":"X","pid":1,"tid":1,"ts":5000,"dur":1500,"args":{"epoch":0,"interval":1,"layer":1}},
{"name":"epoch 1","ph":"i","pid":1,"tid":0,"ts":6500,"s":"p","args":{"loss":1.5}},
{"name":"evaluation 1","ph":"i","pid":1,"tid":0,"ts":6500,"s":"p","args":{"test":0.5,"val":0.25}},
{"name":"checkpoint 1","ph":"i","pid":1,"tid":0,"ts":6500,"s":"p","args":{"bytes":9}},
{"name":"the trace ends at 3 tasks; 1 more are not in it","ph":"i","pid":1,"tid":0,"ts":6500,"s":"p"}
]}
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("not valid JSON")
	}
}

func TestTraceOfNothingIsValid(t *testing.T) {
	var b bytes.Buffer
	if err := NewTrace(&b, 3, nil).Close(); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%v: %q", err, b.String())
	}
}

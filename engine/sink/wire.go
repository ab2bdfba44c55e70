package sink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"dorylus/engine"
)

// kinds has an empty event of every kind that events.jsonl may hold.
var kinds = map[string]engine.Event{}

func init() {
	for _, e := range []engine.Event{
		engine.RunStart{}, engine.TaskDone{}, TaskTotals{}, engine.EpochDone{}, engine.Evaluated{}, engine.Classes{},
		engine.Checkpointed{}, engine.Retried{}, engine.Warned{}, engine.RunDone{},
		engine.LambdaUsed{}, engine.LambdaHeld{}, engine.Moved{},
		engine.WorkerCame{}, engine.WorkerLeft{}, engine.Hedged{}, engine.OwnCores{}, engine.LambdasTuned{}, engine.Wired{}, engine.ServerDone{}, engine.GPUUsed{},
	} {
		kinds[e.Kind()] = e
	}
}

// Marshal is e as one JSON object without a line break, its kind first:
// {"event":"epoch","epoch":3,...}. Numbers that are not finite become null.
func Marshal(e engine.Event) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"event":%q`, e.Kind())
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if option == "omitempty" && (f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0) {
			continue
		}
		x := f.Interface()
		if f.Kind() == reflect.Float64 {
			x = Number(f.Float())
		}
		data, err := json.Marshal(x)
		if err != nil {
			return nil, fmt.Errorf("write event %s: %s: %w", e.Kind(), name, err)
		}
		fmt.Fprintf(&b, ",%q:%s", name, data)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Unmarshal reads what Marshal wrote. null becomes NaN.
func Unmarshal(line []byte) (engine.Event, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, err
	}
	var kind string
	if err := json.Unmarshal(fields["event"], &kind); err != nil {
		return nil, fmt.Errorf(`its "event" is not a word`)
	}
	empty, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("unknown event %q; was it written by a newer version?", kind)
	}
	v := reflect.New(reflect.TypeOf(empty))
	if err := json.Unmarshal(line, v.Interface()); err != nil {
		return nil, err
	}
	for i := range v.Elem().NumField() {
		name, _, _ := strings.Cut(v.Elem().Type().Field(i).Tag.Get("json"), ",")
		f := v.Elem().Field(i)
		if f.Kind() == reflect.Float64 && bytes.Equal(fields[name], []byte("null")) {
			f.SetFloat(math.NaN())
		}
	}
	return v.Elem().Interface().(engine.Event), nil
}

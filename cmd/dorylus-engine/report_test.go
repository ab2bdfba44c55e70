package main

import (
	"strings"
	"testing"
)

// The tables of a report come from the events alone: there is no model and no graph.
func TestReportShowsClasses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "RUN/events.jsonl", `{"event":"run_start","time":"2026-11-30T12:00:00Z","mode":"cpu","model":"gcn","dataset":"g","train_rows":4,"val_rows":4,"test_rows":8,"epochs":1}
{"event":"epoch","epoch":0,"loss":0.5,"seconds":0.25,"update_seconds":0.01,"lr":0.01}
{"event":"eval","epoch":0,"metric":"macro-f1","train":1,"val":0.5,"test":0.625,"train_acc":1,"val_acc":0.75,"test_acc":0.75,"val_loss":0.5,"best":true,"seconds":0.1}
{"event":"classes","epoch":0,"names":["good","bad"],"confusion":[[5,1],[1,1]],"rows":8}
{"event":"run_done","reason":"epochs","epochs_run":1,"total_seconds":1,"peak_memory_bytes":1,"weights_sha256":"a","predictions_sha256":"b"}
`)
	out := mustRun(t, dir, "report", "RUN")
	for _, want := range []string{
		"Train, val and test are macro-f1.\n",
		"8 test rows by class, with the weights after epoch 1:\n",
		"   good     6          6     0.8333  0.8333  0.8333\n",
		"    bad     2          2     0.5000  0.5000  0.5000\n",
		"macro F1 0.6667, micro F1 0.7500, accuracy 0.7500\n",
		"  class  #  0  1\n   good  0  5  1\n    bad  1  1  1\n",
		"Macro-F1   test 62.50 % after epoch 1, the best in validation (50.00 %); train 100.00 %",
		"Accuracy   test 75.00 %, val 75.00 %, train 100.00 %\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	m := object(t, mustRun(t, dir, "report", "--json", "RUN"))
	if m["metric"] != "macro-f1" || m["test_metric"] != 0.625 || m["test_acc"] != 0.75 {
		t.Errorf("metric %v with test_metric %v and test_acc %v", m["metric"], m["test_metric"], m["test_acc"])
	}
}

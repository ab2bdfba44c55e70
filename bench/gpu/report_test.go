package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels/cuda"
)

// folder makes a folder of steps' files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// full are the files of a run on a real GPU.
func full(device string, emulated string) map[string]string {
	return map[string]string{
		"steps.jsonl": `{"step":"selftest","status":"ok","seconds":3}` + "\n" + `{"step":"sanitizer","status":"skipped","seconds":0,"why":"no compute-sanitizer"}` + "\n",
		"kernels.json": `{"device":"` + device + `","emulated":` + emulated + `,"gathers":[{"op":"spmm","width":41,"precision":"fp32","ms":4,"best_ms":3,"at_l2_rate_ms":2,"at_memory_rate_ms":3},` +
			`{"op":"spmmt","width":41,"precision":"fp32","ms":9,"best_ms":9},{"op":"spmm","width":41,"precision":"bf16","ms":2.5,"best_ms":2},` +
			`{"op":"spmm","width":128,"precision":"fp32","panel":64,"ms":18,"best_ms":18},{"op":"spmm","width":128,"precision":"fp32","ms":20,"best_ms":19}],` +
			`"ops":[{"name":"adam 602x128","ms":0.5,"best_ms":0.4},{"name":"ours alone","ms":1,"best_ms":1}],` +
			`"products":[{"op":"nn","M":9,"N":8,"K":7,"precision":"tf32","ms":3,"best_ms":3}]}`,
		"peers.json": `{"torch":"2","spmm":[{"width":41,"precision":"fp32","cusparse_ms":6,"torch_ms":7},{"width":41,"precision":"bf16","cusparse_ms":2},{"width":128,"precision":"fp32","cusparse_ms":19}],` +
			`"ops":[{"name":"adam 602x128","what":"fused","ms":0.25},{"name":"adam 602x128","what":"foreach","ms":0.75},{"name":"theirs alone","what":"x","ms":1}],` +
			`"products":[{"op":"nn","M":9,"N":8,"K":7,"precision":"tf32","ms":6},{"op":"nn","M":9,"N":8,"K":7,"precision":"fp32","ms":60}],` + `"epochs":[{"name":"edges","ms":80},{"name":"csr","ms":60}]}`,
		"epoch-gcn-fp32-sync.json": `{"epoch_seconds":0.016,"vertices":232965,"edges":114615892,"test_acc":0.9,"device":"cuda:0"}`,
		"epoch-gcn-tf32-sync.json": `{"epoch_seconds":0.012,"epochs_run":30,"precision":"tf32","gpu_products":"cublas 12.8.4","vertices":232965,"edges":114615892,"test_acc":0.9,"device":"cuda:0"}`,
	}
}

// verdicts are the goals as text.
func verdicts(t *testing.T, files map[string]string) string {
	t.Helper()
	r, err := collect(folder(t, files))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range r.Goals {
		state := "open: " + g.Why
		if g.Met != nil {
			state = map[bool]string{true: "met", false: "missed"}[*g.Met]
		}
		lines = append(lines, g.What+" "+g.Goal+" "+state)
	}
	return strings.Join(lines, "\n")
}

func TestGoals(t *testing.T) {
	got := verdicts(t, full("NVIDIA H200 9.0", "false"))
	want := `SpMM, times as fast as cuSPARSE ALG2 (preprocessed), width 41 >= 1 met
SpMM, times as fast as cuSPARSE ALG2 (preprocessed), width 128 >= 1 missed
Reddit-sized GCN epoch, ms <= 17 met
Reddit-sized GCN epoch, times as fast as PyG >= 3 met`
	if got != want {
		t.Errorf("goals:\n%s\nwant:\n%s", got, want)
	}
	if got := verdicts(t, full("Tesla T4 7.5", "false")); !strings.Contains(got, "open: another GPU: Tesla T4 7.5") {
		t.Errorf("on another GPU:\n%s", got)
	}
	files := full("NVIDIA H200 9.0", "false")
	files["epoch-gcn-fp32-sync.json"] = strings.Replace(files["epoch-gcn-fp32-sync.json"], "0.016", "0.0215", 1)
	if got := verdicts(t, files); !strings.Contains(got, "<= 17 missed") || !strings.Contains(got, ">= 3 missed") {
		t.Errorf("an epoch of 21.5 ms:\n%s", got)
	}
	delete(files, "peers.json")
	if got := verdicts(t, files); !strings.Contains(got, "open: cuSPARSE was not measured") || !strings.Contains(got, "open: PyG was not measured") {
		t.Errorf("without peers:\n%s", got)
	}
	delete(files, "kernels.json")
	files["devices.json"] = `{"cuda":{"devices":[{"model":"Tesla T4"},{"model":"NVIDIA H200","usable":true}]}}`
	if got := verdicts(t, files); !strings.Contains(got, "Reddit-sized GCN epoch, ms <= 17 missed") {
		t.Errorf("where only devices.json names the device:\n%s", got)
	}
	delete(files, "epoch-gcn-fp32-sync.json")
	if got := verdicts(t, files); strings.Contains(got, "met") || strings.Contains(got, "missed") {
		t.Errorf("without measurements:\n%s", got)
	}
}

// TestEpochs: the result says of an epoch what made it.
func TestEpochs(t *testing.T) {
	r, err := collect(folder(t, full("NVIDIA H200 9.0", "false")))
	if err != nil {
		t.Fatal(err)
	}
	want := epoch{Name: "gcn-tf32-sync", MS: 12, Epochs: 30, Products: "cublas 12.8.4", Precision: "tf32", TestAcc: 0.9, Vertices: 232965, Edges: 114615892, Device: "cuda:0"}
	if len(r.Epochs) != 2 || r.Epochs[1] != want {
		t.Errorf("epochs: %+v, want the second to be %+v", r.Epochs, want)
	}
}

// TestEmulated: whatever times the files have, an emulated run shows none.
func TestEmulated(t *testing.T) {
	files := full("Emulated 8.0", "true")
	if got := verdicts(t, files); strings.Count(got, "open: emulated device") != 3 || strings.Contains(got, "met") || strings.Contains(got, "missed") {
		t.Errorf("goals:\n%s", got)
	}
	delete(files, "kernels.json")
	files["devices.json"] = `{"cuda":{"emulated":true}}`
	r, err := collect(folder(t, files))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Emulated || len(r.Beside) != 0 || strings.Contains(string(text), `"ms":16`) || !strings.Contains(r.Note, "EMULATED") {
		t.Errorf("an emulated run:\n%s", text)
	}
}

func TestBrokenFiles(t *testing.T) {
	for name, text := range map[string]string{"steps.jsonl": "{", "kernels.json": "[]", "epoch-x.json": "no"} {
		files := full("NVIDIA H200 9.0", "false")
		files[name] = text
		if _, err := collect(folder(t, files)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is %q: %v", name, text, err)
		}
	}
	if _, err := collect(t.TempDir()); err == nil {
		t.Error("a folder without steps: no error")
	}
}

// TestBeside: each measurement stands beside the fastest of what was measured elsewhere under
// its name, shape and precision, and nothing that one side lacks.
func TestBeside(t *testing.T) {
	r, err := collect(folder(t, full("NVIDIA H200 9.0", "false")))
	if err != nil {
		t.Fatal(err)
	}
	want := []other{{"adam 602x128", 0.5, "fused", 0.25, 0.5}, {"product nn of 9 x 8 x 7, tf32", 3, "cuBLAS through PyTorch", 6, 2}}
	if !slices.Equal(r.Others, want) {
		t.Errorf("ops beside peers: %+v, want %+v", r.Others, want)
	}
	gathers := []beside{{41, "fp32", 4, 6, 7, 1.5}, {41, "bf16", 2.5, 2, 0, 0.8}, {128, "fp32", 20, 19, 0, 0.95}}
	if !slices.Equal(r.Beside, gathers) {
		t.Errorf("gathers beside peers: %+v, want %+v", r.Beside, gathers)
	}
	// Width 602 was not measured, so that there are three orders of an epoch of four.
	var forms []string
	for _, f := range r.Forms {
		forms = append(forms, fmt.Sprintf("%s: %v %g %g %g", f.Name, f.Gathers, f.MS, f.AtL2, f.AtMemory))
	}
	wantForms := []string{
		"the same, first aggregation kept: [128 fp32 128 fp32] 40 0 0",
		"kept, narrower side first (the engine's): [41 fp32 41 fp32] 8 4 6",
		"the same, bf16: [41 bf16 41 bf16] 5 0 0",
	}
	if !slices.Equal(forms, wantForms) {
		t.Errorf("orders of an epoch: %q, want %q", forms, wantForms)
	}
	if r, err := collect(folder(t, full("Emulated 8.0", "true"))); err != nil || len(r.Others)+len(r.Forms)+len(r.Beside) != 0 {
		t.Errorf("of an emulated device: %+v, %v", r, err)
	}
}

// TestCeilings: bytes at the rates of the same run.
func TestCeilings(t *testing.T) {
	times := Times{Median: 2}
	times.ceilings(cost{Bytes: 4e9, Least: 1e9}, cuda.Rates{Copy: 4000, L2Copy: 8000})
	if want := (Times{Median: 2, GBs: 2000, AtL2: 0.5, AtMemory: 1, Floor: 0.25}); times != want {
		t.Errorf("%+v, want %+v", times, want)
	}
}

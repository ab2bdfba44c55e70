package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sameFiles compares files of dir byte by byte.
func sameFiles(t *testing.T, dir, what string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		a, errA := os.ReadFile(filepath.Join(dir, pairs[i]))
		b, errB := os.ReadFile(filepath.Join(dir, pairs[i+1]))
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s: %s has %d bytes, %s %d, and they are not the same (%v, %v)", what, pairs[i], len(a), pairs[i+1], len(b), errA, errB)
		}
	}
}

// nothingUnfinished checks that dir has neither the files nor parts of them.
func nothingUnfinished(t *testing.T, dir string, files ...string) {
	t.Helper()
	hidden, err := filepath.Glob(filepath.Join(dir, ".*.tmp-*"))
	if err != nil || len(hidden) > 0 {
		t.Errorf("unfinished files are left: %v (%v)", hidden, err)
	}
	for _, f := range files {
		if exists(filepath.Join(dir, f)) {
			t.Errorf("%s was written", f)
		}
	}
}

// Several servers write the files of one process: labels, scores, embeddings.
func TestPredictServers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it runs many processes")
	}
	ownTemp(t)
	dir := t.TempDir()
	for _, model := range []string{"gcn", "gat", "sage"} {
		mustRun(t, dir, "--model="+model, "--hidden=4", "--epochs=3", "--out="+model, "--progress=none")
		for servers, formats := range map[int][]string{2: {".npy", ".csv", ".parquet"}, 3: {".npy", ".csv"}, 25: {".npy"}} {
			if servers == 25 && model != "gat" {
				continue // so many processes take their time
			}
			for _, x := range formats {
				want := mustRun(t, dir, "predict", "--run="+model, "--scores", "-o", "p"+x, "--embeddings=e"+x)
				got := mustRun(t, dir, "predict", "--servers="+itoa(servers), "--run="+model, "--scores", "-o", "q"+x, "--embeddings=f"+x)
				if strings.ReplaceAll(strings.ReplaceAll(got, "q.", "p."), "f.", "e.") != want {
					t.Errorf("it says %q, want %q", got, want)
				}
				mustRun(t, dir, "predict", "--run="+model, "-o", "c"+x)
				mustRun(t, dir, "predict", fmt.Sprint("--servers=", servers), "--run="+model, "-o", "d"+x)
				sameFiles(t, dir, fmt.Sprintf("%s, %d servers", model, servers), "p"+x, "q"+x, "e"+x, "f"+x, "c"+x, "d"+x)
			}
		}
	}
	mustRun(t, dir, "predict", "--servers=2", "--run=gcn", "--weights=final", "-o", "final.npy")
	mustRun(t, dir, "predict", "--run=gcn", "--weights=final", "-o", "one.npy")
	sameFiles(t, dir, "final weights", "final.npy", "one.npy")
	nothingUnfinished(t, dir)
	nobodyLeft(t)
}

// Vertices of several classes, and of none.
func TestPredictServersOfSets(t *testing.T) {
	dir := t.TempDir()
	const n = 90
	var edges, features, labels strings.Builder
	edges.WriteString("source,target\n")
	features.WriteString("a,b,c\n")
	has := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	for v := range n {
		fmt.Fprintf(&edges, "%d,%d\n%d,%d\n", v, (v+1)%n, v, (v+11)%n)
		fmt.Fprintf(&features, "%d,%d,%d\n", has(v%2 == 0), has(v%3 == 0), has(v%5 == 0))
		fmt.Fprintf(&labels, "%d,%d,%d\n", has(v%2 == 0), has(v%3 == 0), has(v%5 == 0))
	}
	if err := os.Mkdir(filepath.Join(dir, "g"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "g"), "edges.csv", edges.String(), "labels.csv", labels.String(), "features.csv", features.String())
	mustRun(t, dir, "prepare", "g", "-o", "s", "--split=random:50/25/25")
	mustRun(t, dir, "--data=s", "--model=sage", "--epochs=150", "--hidden=16", "--lr=0.05", "--dropout=0", "--out=RUN", "--progress=none")
	for _, x := range []string{".npy", ".csv", ".parquet"} {
		for _, scores := range []string{"--scores=false", "--scores"} {
			mustRun(t, dir, "predict", "--run=RUN", scores, "-o", "p"+x)
			mustRun(t, dir, "predict", "--servers=3", "--run=RUN", scores, "-o", "q"+x)
			sameFiles(t, dir, scores, "p"+x, "q"+x)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "q.csv"))
	if err != nil || !strings.HasPrefix(string(text), "id,classes,p_0,p_1,p_2\n") || !strings.Contains(string(text), "0;") {
		t.Errorf("%v\n%.200s", err, text)
	}
}

// Each server opens its part of a store; the one that writes has the names of all vertices,
// and finds damage in others' rows too.
func TestPredictServersOfAStore(t *testing.T) {
	dir := t.TempDir()
	const n = 90
	var edges, labels strings.Builder
	labels.WriteString("id,label\n")
	for v := range n {
		fmt.Fprintf(&edges, "v%d,v%d\nv%d,v%d\n", v, (v+1)%n, v, (v+7)%n)
		fmt.Fprintf(&labels, "v%d,%s\n", v, []string{"low", "high"}[2*v/n])
	}
	write(t, dir, "g/edges.csv", edges.String(), "g/labels.csv", labels.String())
	mustRun(t, dir, "prepare", "g", "-o", "s", "--features=identity", "--split=random:50/25/25")
	for _, model := range []string{"gcn", "sgc", "sage"} {
		mustRun(t, dir, append(quiet, "--data=s", "--model="+model, "--epochs=5", "--out="+model)...)
		for _, x := range []string{".csv", ".npy"} {
			args := []string{"predict", "--run=" + model, "--scores", "-o", "p" + x, "--embeddings=e" + x}
			mustRun(t, dir, args...)
			mustRun(t, dir, "predict", "--servers=3", "--run="+model, "--scores", "-o", "q"+x, "--embeddings=f"+x)
			sameFiles(t, dir, model, "p"+x, "q"+x, "e"+x, "f"+x)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "q.csv"))
	if err != nil || !strings.Contains(string(text), "\nv89,") {
		t.Errorf("%v\n%.200s", err, text)
	}
	order, err := os.ReadFile(filepath.Join(dir, "s", "order.npy"))
	if err != nil {
		t.Fatal(err)
	}
	order[len(order)-1] = 0x40
	if err := os.WriteFile(filepath.Join(dir, "s", "order.npy"), order, 0o644); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, call(t, dir, nil, "predict", "--servers=3", "--run=gcn", "-o", "bad.csv"), exitFailed, "row 89")
	nothingUnfinished(t, dir, "bad.csv")
}

// A server that is killed is named, and nothing half done is left, even of the one that
// writes.
func TestPredictLosesAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it runs many processes")
	}
	ownTemp(t)
	dir := t.TempDir()
	mustRun(t, dir, "prepare", "synth:sbm,vertices=60000,degree=8,classes=4,features=32", "-o", "s")
	mustRun(t, dir, "--data=s", "--model=gat", "--epochs=1", "--out=RUN", "--progress=none")
	for rank := range 2 {
		cmd := command(t, "predict", "--servers=2", "--run=RUN", "--embeddings=e.csv")
		done := make(chan result, 1)
		go func() { done <- finish(t, cmd, dir, nil) }()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		var r result
		for killed := false; r.err == ""; {
			select {
			case <-tick.C:
				begun, err := filepath.Glob(filepath.Join(dir, ".e.csv.tmp-*"))
				if err != nil {
					t.Fatal(err)
				}
				if pid := servers(t)["predict "+itoa(rank)]; len(begun) > 0 && pid > 0 && !killed {
					killed = true
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
			case r = <-done:
				if r.err == "" {
					t.Fatalf("exit %d, it was over before graph server %d could be killed: %s", r.code, rank, r.out)
				}
			}
		}
		if r.code != exitFailed || !strings.Contains(r.err, fmt.Sprintf("dorylus-engine: graph server %d at 127.0.0.1:", rank)) || !strings.Contains(r.err, "was killed by signal 9") {
			t.Errorf("graph server %d was killed: exit %d\n%s%s", rank, r.code, r.out, r.err)
		}
		nothingUnfinished(t, dir, "e.csv")
		nobodyLeft(t)
	}
}

// On several machines only server 0 has RUN, and each may have the data elsewhere.
func TestServePredict(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	ring(t, dir)
	mustRun(t, dir, "--data=s", "--epochs=3", "--out=RUN", "--progress=none")
	mustRun(t, dir, "predict", "--run=RUN", "-o", "one.csv")
	if err := os.CopyFS(filepath.Join(far, "copy"), os.DirFS(filepath.Join(dir, "s"))); err != nil {
		t.Fatal(err)
	}
	addrs := free(t, 2)
	flags := []string{"serve", "predict", "--graphs=" + strings.Join(addrs, ","), "--insecure", "--run=RUN", "-o", "two.csv"}
	pair := func(more ...string) (lead, other result) {
		done := make(chan result, 1)
		cmd := command(t, append(append(flags[:len(flags):len(flags)], "--rank=1"), more...)...)
		go func() { done <- finish(t, cmd, far, nil) }()
		lead = call(t, dir, nil, append(flags[:len(flags):len(flags)], "--rank=0")...)
		return lead, <-done
	}
	lead, other := pair("--data=copy")
	if lead.code != exitDone || other.code != exitDone || other.out != "" || !strings.Contains(lead.err, "graph 1") {
		t.Fatalf("server 0: exit %d\n%s%s\nserver 1: exit %d\n%s%s", lead.code, lead.out, lead.err, other.code, other.out, other.err)
	}
	sameFiles(t, dir, "two machines", "one.csv", "two.csv")
	if exists(filepath.Join(far, "two.csv")) {
		t.Error("server 1 wrote too")
	}
	if err := os.Remove(filepath.Join(dir, "two.csv")); err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{"cora": "another data than server", "none": "none"} {
		lead, other = pair("--data=" + data)
		if lead.code != exitFailed || other.code != exitFailed || !strings.Contains(lead.err+other.err, want) || !strings.Contains(lead.err, "dorylus-engine: ") {
			t.Errorf("--data=%s\nserver 0: exit %d\n%s%s\nserver 1: exit %d\n%s%s", data, lead.code, lead.out, lead.err, other.code, other.out, other.err)
		}
		nothingUnfinished(t, dir, "two.csv")
	}
}

// free are addresses of loopback that nobody listens at.
func free(t *testing.T, n int) []string {
	t.Helper()
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

func TestPredictServersUsage(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"predict --servers=-1 --run=R -o x.csv":                                 "--servers=-1: give 1 or more",
		"serve predict --run=R":                                                 "predict: name the file to write",
		"serve predict --run=R -o x.csv --params=2":                             "needs no parameter servers",
		"serve predict --run=R -o x.csv --continue":                             "a prediction begins anew",
		"serve predict --run=R -o x.csv --rank=0":                               "--graphs=HOST:PORT,...",
		"serve predict --run=R -o x.csv --rank=2 --graphs=a,b --insecure":       "ranks go from 0 to 1",
		"serve predict --run=R -o x.csv --rank=0 --graphs=a":                    "give --certs=DIR",
		"serve graph --rank=0 --graphs=127.0.0.1:1 --params=127.0.0.1:2 -o x.n": "unknown flag -o",
	} {
		wantFailure(t, call(t, dir, nil, strings.Fields(args)...), exitUsage, want)
	}
	wantFailure(t, call(t, dir, nil, "predict", "--servers=2", "--run=none", "-o", "x.csv"), exitFailed, "none: config.yaml")
	mustRun(t, dir, "--epochs=1", "--out=RUN", "--progress=none")
	wantFailure(t, call(t, dir, nil, "predict", "--servers=2", "--run=RUN", "-o", "none/x.csv"), exitFailed, "none/x.csv: no such file")
}

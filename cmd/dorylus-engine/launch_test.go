package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLaunchUsage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "hosts", "n1\nn2\n", "loop", "127.0.0.1\n", "bad", "n1 nonsense\n", "marked", "n1\nn2 param\n")
	for _, test := range []struct {
		args string
		env  string
		want []string
	}{
		{"launch local --servers=0", "", []string{"--servers=0: give 1 or more"}},
		{"launch local --params=0", "", []string{"--params=0: give 1 or more"}},
		{"launch local --max-restarts=-1", "", []string{"--max-restarts=-1"}},
		{"launch local --server=2", "", []string{"did you mean --servers?"}},
		{"launch local --epochs=0", "", []string{"--epochs=0: give 1 or more"}},
		{"launch lokal", "", []string{`did you mean "local"?`}},
		{"launch ssh", "", []string{"--hosts=FILE"}},
		{"launch ssh --hosts=none", "", []string{"--hosts=none: no such file"}},
		{"launch ssh --hosts=bad", "", []string{"--hosts=bad: line 1", `"nonsense"`}},
		{"launch ssh --hosts=hosts", "", []string{"certs dev", "--certs=DIR"}},
		{"launch ssh --hosts=hosts --insecure", "", []string{"--insecure", "not loopback"}},
		{"launch ssh --hosts=loop --insecure --certs=c", "", []string{"--insecure: leave it out"}},
		{"launch ssh --hosts=loop --insecure --runs=2", "", []string{"--runs=2"}},
		{"launch ssh --ip_config=none", "", []string{"--hosts=none: no such file"}},
		{"launch k8s --image=x", "", []string{"add --dry-run"}},
		{"launch k8s --dry-run", "", []string{"--out: name a folder such as /out/RUN"}},
		{"launch k8s --dry-run --image=x --out=RUN", "", []string{"--out=RUN is lost with its pod"}},
		{"launch k8s --dry-run --image=x --out=/out/RUN --out-claim=c --data=/data/s", "", []string{"--data=/data/s is not in a pod", "--data-claim"}},
		{"launch k8s --dry-run --out=/out/RUN --out-claim=c --certs-secret=s", "", []string{"--image="}},
		{"launch k8s --dry-run --image=x --out=/out/RUN --out-claim=c --certs-secret=s -o json", "", []string{"--output=json: choose yaml"}},
		{"serve", "", nil},
		{"serve graph", "", []string{"give --rank", "srun"}},
		{"serve graph --rank=0 --graphs=a:b --params=c", "", []string{`--graphs=a:b: address "a:b"`}},
		{"serve graph --rank=0 --graphs=a --params=b", "", []string{"give --certs=DIR"}},
		{"serve graph --rank=0 --graphs=a --params=b --insecure --cert=x", "", []string{"--insecure: leave it out"}},
		{"serve graph --rank=0 --graphs=a --params=b --certs=x --cert=x", "", []string{"--certs=x: give either"}},
		{"serve graph --rank=0 --runs=2", "", []string{"--runs=2: several servers train one run"}},
		{"serve param --model=gat", "", []string{"unknown flag --model"}},
		{"serve auto --params=1 --insecure", "RANK=x WORLD_SIZE=2", []string{`RANK="x"`}},
		{"serve health driver", "", []string{`"driver" is no role`}},
		{"certs dev", "", []string{"name a folder"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			r := call(t, dir, strings.Fields(test.env), strings.Fields(test.args)...)
			if test.want == nil {
				if r.code != exitDone {
					t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
				}
				return
			}
			wantFailure(t, r, exitUsage, test.want...)
		})
	}
}

func TestCertsDev(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "certs", "dev", "certs", "--servers=2", "--params=1", "--hosts=n1,10.0.0.2")
	for _, name := range []string{"ca.pem", "graph-0.pem", "graph-1-key.pem", "param-0.pem", "param-0-key.pem"} {
		if !exists(filepath.Join(dir, "certs", name)) {
			t.Errorf("%s is missing", name)
		}
	}
	wantFailure(t, call(t, dir, nil, "certs", "dev", "certs"), exitFailed, "certs/ca.pem is there already")
	r := call(t, dir, nil, "serve", "graph", "--rank=0", "--graphs=127.0.0.1:1", "--params=127.0.0.1:2", "--certs=none")
	wantFailure(t, r, exitFailed, "none/graph-0.pem")
}

func TestLaunchK8s(t *testing.T) {
	args := "launch k8s --dry-run -o yaml --job=reddit --image=registry.example/dorylus:1 --servers=3 --params=2 --certs-secret=c --out=/out/R --out-claim=runs --model=gat --device=cpu/avx2"
	for api, want := range map[string][]string{
		"jobset": {"kind: JobSet", "- --model=gat", "- --out=/out/R", "- --device=cpu/avx2", "- --graphs=3", "- --params=2", "- --continue", "name: reddit", "maxRestarts: 5"},
		"job":    {"kind: Service", "kind: Job", "name: reddit-graph", "subdomain: reddit", "backoffLimitPerIndex: 5"},
	} {
		out := mustRun(t, t.TempDir(), append(strings.Fields(args), "--api="+api)...)
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("--api=%s: %q is missing in\n%s", api, text, out)
			}
		}
		if n := strings.Count(out, "--model=gat"); n != 1 {
			t.Errorf("--api=%s: %d roles have train flags", api, n)
		}
	}
}

func TestLaunchSSHShowsItsCommands(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "hosts", "me@n1\nn2 9000\n")
	r := call(t, dir, nil, strings.Fields("launch ssh --hosts=hosts --certs=/etc/dorylus --program=/opt/dorylus-engine --dir=/work --data=/data/g --dry-run --model=gat --out=/nfs/RUN")...)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != exitDone || len(lines) != 3 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	for i, want := range []string{
		"ssh -o BatchMode=yes me@n1 'cd /work && exec /opt/dorylus-engine serve graph --rank=0 --graphs=n1:7070,n2:9000 --params=n1:7071 --job=run-",
		"ssh -o BatchMode=yes n2 'cd /work && exec /opt/dorylus-engine serve graph --rank=1 ",
		"ssh -o BatchMode=yes me@n1 'cd /work && exec /opt/dorylus-engine serve param --rank=0 ",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is\n%s\nwant\n%s", i, lines[i], want)
		}
		if graph := i < 2; strings.Contains(lines[i], "--model=gat") != graph || !strings.Contains(lines[i], "--certs=/etc/dorylus") || !strings.Contains(lines[i], "--control-stdin") {
			t.Errorf("line %d is\n%s", i, lines[i])
		}
	}
	if !strings.Contains(r.err, "On each host there must be /opt/dorylus-engine and the data /data/g, and the certificates in /etc/dorylus.") {
		t.Errorf("it does not say what has to be there:\n%s", r.err)
	}
}

func TestLaunchDryRun(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, dir, "launch", "local", "--servers=3", "--params=2", "--dry-run", "--out=RUN")
	if !strings.Contains(out, "Would train gcn") || !strings.Contains(out, "on 3 graph servers and 2 parameter servers") {
		t.Errorf("it says\n%s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a dry run left %v (%v)", left, err)
	}
}

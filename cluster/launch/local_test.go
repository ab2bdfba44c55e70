package launch

import (
	"net"
	"os"
	"strings"
	"testing"

	"dorylus/cluster/member"
	"dorylus/cluster/rpc"
)

func TestLocal(t *testing.T) {
	l, err := OpenLocal(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := &Spec{Job: "j", Servers: l.Servers, Common: []string{"--peer-timeout=1m"}, Train: []string{"--model=gat"}}
	all := l.Processes("/bin/engine", []string{"A=b"}, spec)
	peers := "--graphs=" + l.Servers[0].Address + "," + l.Servers[1].Address + " --params=" + l.Servers[2].Address
	for i, want := range []string{"serve graph --rank=0 " + peers + " --job=j --peer-timeout=1m --model=gat", "serve graph --rank=1 " + peers, "serve param --rank=0 " + peers + " --job=j --peer-timeout=1m --listen-fd=3"} {
		if got := strings.Join(all[i].Args, " "); !strings.HasPrefix(got, want) {
			t.Errorf("server %d is called with\n%s\nwant\n%s ...", i, got, want)
		}
		value := func(flag string) string {
			for _, a := range all[i].Args {
				if v, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
					return v
				}
			}
			return ""
		}
		id, err := rpc.LoadIdentity(rpc.Files{Cert: value("cert"), Key: value("key"), CA: value("ca")})
		if err != nil {
			t.Fatal(err)
		}
		if w := id.Who(); string(w.Role) != string(all[i].Role) || w.Rank != all[i].Rank {
			t.Errorf("server %d has the certificate of %v", i, w)
		}
		if lis, err := net.Listen("tcp", all[i].Address); err == nil {
			lis.Close()
			t.Errorf("port %s is not held", all[i].Address)
		}
	}
	info, err := os.Stat(l.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of certificates is %v, %v", info.Mode(), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.dir); err == nil {
		t.Error("the folder of certificates is left")
	}
	for _, p := range l.Servers {
		lis, err := net.Listen("tcp", p.Address)
		if err != nil {
			t.Errorf("port %s is not free again: %v", p.Address, err)
			continue
		}
		lis.Close()
	}
}

func TestSSH(t *testing.T) {
	servers, err := member.Place([]member.Host{{Name: "me@a", Slots: 1}, {Name: "b", Slots: 1}}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := SSH{Command: []string{"ssh", "-o", "BatchMode=yes"}, Program: "bin/dorylus-engine", Dir: "my runs"}
	all := s.Processes(&Spec{Job: "j", Servers: servers, Common: []string{"--certs=it's here"}, Train: []string{"--data=store"}})
	want := `ssh -o BatchMode=yes me@a 'cd '\''my runs'\'' && exec bin/dorylus-engine serve graph --rank=0 --graphs=a:7070,b:7070 --params=a:7071 --job=j '\''--certs=it'\''\'\'''\''s here'\'' --data=store --control-stdin'`
	if got := all[0].Line(); got != want || !all[0].Wired || len(all) != 3 {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

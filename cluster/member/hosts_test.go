package member

import (
	"fmt"
	"strings"
	"testing"
)

func TestHostFile(t *testing.T) {
	for _, test := range []struct {
		name, file string
		params     int
		want       string
	}{
		{"one a line", "a\nb\n\n# c\n", 0, "graph0 a:7070, graph1 b:7070, param0 a:7071"},
		{"parameter servers beside", "a\nb", 3, "graph0 a:7070, graph1 b:7070, param0 a:7071, param1 b:7071, param2 a:7072"},
		{"roles", "p param 8000\ng1 graph\ng2 slots=2", 0, "graph0 g1:7070, graph1 g2:7070, graph2 g2:7071, param0 p:8000"},
		{"DGL", "10.0.0.1 30050\n10.0.0.2 30051", 1, "graph0 10.0.0.1:30050, graph1 10.0.0.2:30051, param0 10.0.0.1:30051"},
		{"the same host twice", "a 9000\na 9100\na 9000", 1, "graph0 a:9000, graph1 a:9100, graph2 a:9101, param0 a:9102"},
		{"MPI", "a:2\nb slots=1", 1, "graph0 a:7070, graph1 a:7071, graph2 b:7070, param0 a:7072"},
		{"logins", "me@a\nyou@a", 1, "graph0 a:7070, graph1 a:7071, param0 a:7072"},
		{"IPv6", "[::1]:9000", 1, "graph0 [::1]:9000, param0 [::1]:9001"},
	} {
		hosts, err := ReadHosts(strings.NewReader(test.file))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		all, err := Place(hosts, test.params, 0)
		var got []string
		for _, p := range all {
			got = append(got, fmt.Sprintf("%s%d %s", p.Role, p.Rank, p.Address))
		}
		if err != nil || strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got  %s (%v)\nwant %s", test.name, strings.Join(got, ", "), err, test.want)
		}
	}
	for file, want := range map[string]string{
		"":               "names no host",
		"# only":         "names no host",
		"a\nb c":         `line 2: b: "c" is neither`,
		"a slots=0":      "slots=0",
		"a 99999":        `"99999" is neither`,
		"-oProxy=x":      "no host name",
		"a;reboot":       "no host name",
		"a:99999":        "no port",
		"$(reboot) 7070": "no host name",
	} {
		if _, err := ReadHosts(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", file, err, want)
		}
	}
	if _, err := Place([]Host{{Name: "a", Role: Param, Slots: 1}}, 0, 0); err == nil {
		t.Error("a host file of parameter servers only was taken")
	}
	if _, err := Place([]Host{{Name: "a", Slots: 1}, {Name: "a", Role: Param, Slots: 1}}, 2, 0); err == nil {
		t.Error("--params=2 with one param line was taken")
	}
}

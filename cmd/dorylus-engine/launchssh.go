package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dorylus/cluster/launch"
	"dorylus/cluster/member"
)

// sshFlags are those of launch ssh.
type sshFlags struct {
	launchFlags
	hosts    string
	port     int
	ssh      string
	program  string
	dir      string
	certs    string
	insecure bool
}

func (a *app) launchSSHCommand() *cobra.Command {
	var f sshFlags
	cmd := &cobra.Command{
		Use:   "ssh",
		Short: "Train with servers on other machines, started by ssh",
		Long: `Ssh starts a server on each line of --hosts and stays with them as launch local does. A line is a host,
perhaps with a port, graph or param, and slots=N; DGL's ip_config is such a file. Without lines marked param,
--params parameter servers run beside the graph servers.

With --mode=gpu each graph server takes a GPU of its own among those of its host.

It copies nothing: on each host there must be the program (--program), the data under the name of --data,
and, from certs dev, the certificates (--certs). --out is on the first graph server's host; servers can be
started again from a checkpoint if all hosts see that folder. --dry-run prints the commands.`,
		Example: `  dorylus-engine certs dev certs --servers=2 --params=1 --hosts=n1,n2
  dorylus-engine launch ssh --hosts=hosts.txt --program=/opt/dorylus-engine --certs=certs --data=/data/mystore`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.launchSettings(cmd)
			if err != nil {
				return err
			}
			return a.launchSSH(cmd.Context(), r, &f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.hosts, "hosts", "", "`FILE` with a host a line")
	set.IntVar(&f.port, "port", member.DefaultPort, "port of servers whose line has none; more on a host take the next ones")
	set.StringVar(&f.ssh, "ssh", "ssh -o BatchMode=yes", "`COMMAND` that starts a command on a host; both are put behind it")
	set.StringVar(&f.program, "program", "dorylus-engine", "`PATH` of this program on the hosts")
	set.StringVar(&f.dir, "dir", "", "`DIR` on the hosts to start in (default: that of the login)")
	set.StringVar(&f.certs, "certs", "", "`DIR` on the hosts with the files of certs dev")
	set.BoolVar(&f.insecure, "insecure", false, "plain text, if all hosts are loopback addresses")
	for _, name := range []string{"hosts", "port", "ssh", "program", "dir", "certs", "insecure"} {
		inGroup(set.Lookup(name), groupCluster)
	}
	f.add(cmd, 0)
	addSettings(cmd)
	set.SetNormalizeFunc(dglNames)
	return cmd
}

// dglNames lets DGL's names of flags stand for ours.
func dglNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "ip_config":
		name = "hosts"
	case "part_config":
		name = "data"
	}
	return pflag.NormalizedName(name)
}

// launchSSH trains once, on the hosts of a file.
func (a *app) launchSSH(ctx context.Context, r *resolved, f *sshFlags) error {
	c := &r.Config
	if f.hosts == "" {
		return usagef("launch ssh: name a file with a host a line: --hosts=FILE")
	}
	hosts, err := readHosts(f.hosts)
	if err != nil {
		return err
	}
	params := f.params
	for _, h := range hosts {
		if h.Role == member.Param {
			params = 0 // those of the file
		}
	}
	placed, err := member.Place(hosts, params, f.port)
	if err != nil {
		return usagef("--hosts=%s: %w", f.hosts, err)
	}
	f.servers = len(placed)
	if err := f.check(); err != nil {
		return err
	}
	switch {
	case c.Runs > 1:
		return usagef("--runs=%d: launch ssh trains once; call it again with another --seed", c.Runs)
	case f.insecure && f.certs != "":
		return usagef("--insecure: leave it out where there are certificates")
	case f.insecure && !allLoopback(placed):
		return usagef("--insecure: --hosts=%s has hosts that are not loopback addresses; give --certs=DIR", f.hosts)
	case !f.insecure && f.certs == "":
		return usagef("launch ssh: servers prove who they are: make certificates by dorylus-engine certs dev DIR, copy them to each host, and give --certs=DIR")
	}
	trust := "--certs=" + f.certs
	if f.insecure {
		trust = "--insecure"
	}
	command := strings.Fields(f.ssh)
	if len(command) == 0 {
		return usagef("--ssh: name the command that starts commands on hosts")
	}
	if c.OutDir == "" {
		c.OutDir = c.Resume
	}
	ssh := &launch.SSH{Command: command, Program: f.program, Dir: f.dir}
	job, err := runName()
	if err != nil {
		return err
	}
	servers := func(number int, why string) ([]launch.Server, error) {
		common, train := a.attempt(c, &f.launchFlags, number, why)
		return ssh.Processes(&launch.Spec{
			Job: fmt.Sprintf("%s-%d", job, number), Servers: placed,
			Common: append(append(f.common(c), trust), common...), Train: append(withoutDevice(r.trainFlags()), train...),
		}), nil
	}
	if c.DryRun {
		all, err := servers(0, "")
		for _, s := range all {
			fmt.Fprintln(a.out, s.Line())
		}
		a.note(false, "Nothing was started (--dry-run). %s", f.needs(c.Data))
		return err
	}
	out, err := a.supervise(ctx, &f.launchFlags, c.OutDir, f.peer+10*time.Second, servers)
	if out != nil {
		if _, printErr := a.out.Write(out.Output); printErr != nil && err == nil {
			err = printErr
		}
	}
	return err
}

// needs says what launch ssh does not bring.
func (f *sshFlags) needs(data string) string {
	text := fmt.Sprintf("On each host there must be %s", f.program)
	if data != "cora" && !strings.HasPrefix(data, "synth:") {
		text += " and the data " + data
	}
	if f.certs != "" {
		text += ", and the certificates in " + f.certs
	}
	return text + "."
}

func allLoopback(placed []member.Placed) bool {
	for _, p := range placed {
		host, _, err := net.SplitHostPort(p.Address)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dorylus/cluster/certs"
)

func (a *app) certsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Certificates by which servers of a run know each other",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var p certs.Plan
	dev := &cobra.Command{
		Use:   "dev DIR",
		Short: "Make certificates where no authority does",
		Long: `Dev makes a throw-away authority, and a certificate and a key for each server of a run: graph-0.pem,
graph-0-key.pem and so on, and ca.pem. The authority's own key is not written: nobody can add a server later.
Each server is known by its role and rank (spiffe://RUN/graph/0), wherever it runs. Copy the folder to each
host, or better only that host's files; servers take it by --certs=DIR. In production use your own
authority, for example SPIRE, and --cert, --key and --ca; files may change while servers run.`,
		Args: oneArg("a folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := certs.Write(args[0], p)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%d files are in %s, good for %s: %d graph servers, %d parameter servers.\n",
				len(names), args[0], p.Life, p.Graphs, p.Params)
			return err
		},
	}
	set := dev.Flags()
	set.SortFlags = false
	set.IntVar(&p.Graphs, "servers", 2, "graph servers")
	set.IntVar(&p.Params, "params", 1, "parameter servers")
	set.StringSliceVar(&p.Hosts, "hosts", nil, "names and addresses to put into them, for other tools: ours look at role and rank")
	set.StringVar(&p.Run, "run", certs.DevRun, "trust domain, and perhaps a path, that all servers of a run have")
	set.DurationVar(&p.Life, "life", 30*24*time.Hour, "how long they are good for")
	cmd.AddCommand(dev)
	return cmd
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dorylus/cluster/member"
	"dorylus/cluster/rpc"
)

// groupCluster heads the flags by which servers find and trust each other.
const groupCluster = "Servers"

// serveFlags are what a server of a run is told besides the settings.
type serveFlags struct {
	rank                 int
	graphs, params       string
	hosts, job, etcd     string
	listen               string
	listenFD, port       int
	certs, cert, key, ca string
	insecure             bool
	ready, peer, stall   time.Duration
	goOn                 bool

	// Set by launch.
	control bool
	again   bool
	because string
	columns int
	run     int
	quiet   bool

	// alone: there are no parameter servers.
	alone bool
}

const (
	defaultReady = 5 * time.Minute
	defaultPeer  = 20 * time.Second
	defaultStall = 15 * time.Minute
	defaultJob   = "dorylus"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be one of several servers that train one model",
		Long: `Serve is one server of a run on several: a graph server, which owns a part of the graph, or a parameter
server, which owns a part of the weights. The bits of a synchronous run are those of one process. Graph
server 0 leads: it writes --out and prints the summary.

Which server this is, and where the others are, is told by --rank, --graphs and --params, by a host file,
or by the launcher that started it: torchrun, Kubernetes (JobSet, Indexed Job, StatefulSet), Slurm's srun,
mpirun, AWS Batch. Where a launcher gives each process only a number, start them all as serve auto, with
--params=P: the last P are parameter servers. Where there is none, --etcd=URL. What was found is printed.

Between machines everything is encrypted, and each server proves its role and rank: see certs dev. To start
all servers at once see launch.`,
		Example: `  dorylus-engine serve graph --rank=0 --graphs=a:7070,b:7070 --params=a:7071 --certs=certs --data=mystore
  srun -n 5 dorylus-engine serve auto --params=1 --certs=certs --data=mystore --out=RUN`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.serveRoleCommand(member.Graph), a.serveRoleCommand(member.Param), a.serveRoleCommand(""), a.servePredictCommand(), a.serveHealthCommand())
	return cmd
}

// serveRoleCommand is a server of a role; "": of the one that its rank has.
func (a *app) serveRoleCommand(role member.Role) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{Use: string(role), Args: noArgs}
	switch role {
	case member.Graph:
		cmd.Short = "Be a graph server: part of the graph, and train flags"
	case member.Param:
		cmd.Short = "Be a parameter server: part of the weights"
	default:
		cmd.Use, cmd.Short = "auto", "Be what the launcher's number says, graph servers first"
	}
	cmd.Long = cmd.Short + ". See serve --help for how it finds the others."
	f.add(cmd.Flags())
	if role == member.Param {
		cmd.Flags().String("device", "auto", "kernels, as those of the graph servers: the bits depend on them")
		inGroup(cmd.Flags().Lookup("device"), groupPipeline)
		cmd.Flags().Bool("spot-notice", false, "stop the run when EC2 gives notice that it takes this spot instance back")
		inGroup(cmd.Flags().Lookup("spot-notice"), groupPipeline)
	} else {
		addSettings(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if f.control {
			controlled, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			go obey(cancel)
			ctx = controlled
		}
		return a.serve(ctx, cmd, role, &f)
	}
	return cmd
}

// add adds the flags of a server.
func (f *serveFlags) add(set *pflag.FlagSet) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	own.IntVar(&f.rank, "rank", -1, "number of this server in its role, from 0 (default: the launcher's)")
	own.StringVar(&f.graphs, "graphs", "", "graph servers: `HOST:PORT,...` by rank, or how many, where the launcher knows the rest")
	own.StringVar(&f.params, "params", "", "parameter servers: `HOST:PORT,...` by rank, or how many")
	own.StringVar(&f.hosts, "hosts", "", "`FILE` with a host a line (also DGL's ip_config, MPI's host files)")
	own.StringVar(&f.etcd, "etcd", "", "`URL` of an etcd at which servers without a launcher find each other, with --graphs=N --params=P")
	own.StringVar(&f.job, "job", defaultJob, "name of the run: servers of different ones refuse each other")
	own.StringVar(&f.listen, "listen", "", "`ADDRESS:PORT` to listen at (default: the own port of --graphs or --params, on all interfaces)")
	own.IntVar(&f.port, "port", member.DefaultPort, "where servers listen whose launcher knows hosts only; more on a host take the next ones")
	own.StringVar(&f.certs, "certs", "", "`DIR` of certs dev, in which each server finds its certificate")
	own.StringVar(&f.cert, "cert", "", "certificate with the SPIFFE id of this server, a PEM `FILE`; read again when it changes")
	own.StringVar(&f.key, "key", "", "its key, a PEM `FILE`")
	own.StringVar(&f.ca, "ca", "", "who has signed the others' certificates, a PEM `FILE`")
	own.BoolVar(&f.insecure, "insecure", false, "plain text, on loopback addresses only")
	own.DurationVar(&f.ready, "ready-timeout", defaultReady, "how long the others may take to appear")
	own.DurationVar(&f.peer, "peer-timeout", defaultPeer, "how long another server may be out of reach before the run ends, such as 90s or 2m; where packets vanish without a word it takes 10 to 20 s more to notice")
	own.DurationVar(&f.stall, "stall-timeout", defaultStall, "how long a server that can be reached may keep the others waiting before the run ends, such as 30m or 2h")
	own.BoolVar(&f.goOn, "continue", false, "go on from the last checkpoint in --out, if there is one: for orchestrators that start lost servers again")
	own.VisitAll(func(fl *pflag.Flag) { inGroup(fl, groupCluster) })
	set.SortFlags = false
	set.AddFlagSet(own)
	set.IntVar(&f.listenFD, "listen-fd", 0, "descriptor of a socket to listen at")
	set.BoolVar(&f.control, "control-stdin", false, "end when standard input does; TERM and INT on it are signals")
	set.BoolVar(&f.again, "again", false, "a lost server is worth another try")
	set.BoolVar(&f.quiet, "quiet", false, "do not show who is there")
	hidden := []string{"listen-fd", "control-stdin", "again", "quiet"}
	if !f.alone {
		set.StringVar(&f.because, "because", "", "why the run is started again")
		set.IntVar(&f.columns, "columns", 0, "width of the launcher's terminal")
		set.IntVar(&f.run, "run", 0, "number of the run among several")
		hidden = append(hidden, "because", "columns", "run")
	}
	for _, name := range hidden {
		set.Lookup(name).Hidden = true
	}
}

// serve finds this server's place and fills it until the run ends.
func (a *app) serve(ctx context.Context, cmd *cobra.Command, role member.Role, f *serveFlags) error {
	var r *resolved
	if role != member.Param { // settings are wrong or right before anybody is waited for
		var err error
		if r, err = a.resolve(cmd); err != nil {
			return err
		}
		if err := r.Config.Validate(); err != nil {
			return usage(err)
		}
		if r.Runs > 1 {
			return usagef("--runs=%d: several servers train one run; start them again with another --seed", r.Runs)
		}
	}
	s, err := a.takeSeat(ctx, role, f)
	if err != nil {
		return s.early(ctx, err)
	}
	defer s.leave()
	if f.columns > 0 {
		a.columns = f.columns
	}
	if s.Role == member.Param {
		device, spot := cmd.Flags().Lookup("device").Value.String(), cmd.Flags().Lookup("spot-notice").Value.String() == "true"
		if r != nil { // from wherever they are set
			device, spot = r.Device, r.SpotNotice
		}
		if spot {
			var done func()
			if ctx, done, err = a.heedSpot(ctx); err != nil {
				return err
			}
			defer done()
		}
		return a.serveParam(ctx, s, device)
	}
	a.seat = s
	a.local, a.mates = s.mates()
	return a.train(ctx, r)
}

// exitKilled is the code by which shells tell of SIGKILL.
const exitKilled = 128 + 9

// obey passes on what the launcher writes to standard input; its end is SIGTERM, and KILL
// ends this process at once.
func obey(cancel context.CancelCauseFunc) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch strings.TrimSpace(in.Text()) {
		case "INT":
			cancel(stopped{os.Interrupt})
		case "KILL":
			os.Exit(exitKilled)
		default:
			cancel(stopped{syscall.SIGTERM})
		}
	}
	cancel(stopped{syscall.SIGTERM})
}

// healthTime is how long a server may take to answer.
const healthTime = 4 * time.Second

func (a *app) serveHealthCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "health graph|param", Short: "Ask the server of this host by gRPC whether it is well: exit code 0 or 1, for probes",
		Args: oneArg("a role, graph or param"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTime)
			defer cancel()
			role := member.Role(args[0])
			if role != member.Graph && role != member.Param {
				return usagef("serve health: %q is no role: name graph or param", args[0])
			}
			m, err := a.place(role, &f)
			if err != nil {
				return err
			}
			id, err := f.identity(m)
			if err != nil {
				return err
			}
			addr := fmt.Sprintf("127.0.0.1:%d", ownPort(m, &f))
			conn, err := rpc.Dial(addr, id, rpc.Who{Role: rpc.Role(m.Role), Rank: m.Rank}, rpc.Options{})
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := rpc.Healthy(ctx, conn, ""); err != nil {
				return fmt.Errorf("%s %d at %s: %s", m.Role.Words(), m.Rank, addr, rpc.Text(err))
			}
			_, err = fmt.Fprintf(a.out, "%s %d at %s serves\n", m.Role.Words(), m.Rank, addr)
			return err
		},
	}
	f.add(cmd.Flags())
	for _, name := range []string{"listen", "etcd", "continue", "ready-timeout", "peer-timeout", "stall-timeout"} {
		cmd.Flags().Lookup(name).Hidden = true
	}
	return cmd
}

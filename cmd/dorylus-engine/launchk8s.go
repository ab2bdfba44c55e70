package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dorylus/cluster/launch"
	"dorylus/cluster/member"
)

func (a *app) launchK8sCommand() *cobra.Command {
	k := launch.Kubernetes{}
	var f launchFlags
	var output string
	var selector map[string]string
	cmd := &cobra.Command{
		Use:   "k8s",
		Short: "Print the manifest of a run on Kubernetes",
		Long: `K8s prints a run as a JobSet, or with --api=job as two Indexed Jobs and a headless Service, for clusters
without JobSet's controller. It talks to no cluster: hand the manifest to kubectl. When a server is lost
all are started again and go on from the last checkpoint in --out, which therefore has to outlive a pod:
--out=/out/RUN on --out-claim, a volume that all graph servers can mount. SIGTERM writes a checkpoint
within the grace of two minutes. With --mode=gpu each graph server has a limit of 1 nvidia.com/gpu, and a
parameter server none. Pods run as no root, with nothing to write to but /tmp and /out.`,
		Example: `  dorylus-engine certs dev certs --servers=4 --params=2
  kubectl create secret generic reddit-certs --from-file=certs
  dorylus-engine launch k8s --dry-run -o yaml --job=reddit --image=registry.example/dorylus:1 --servers=4 --params=2 \
    --certs-secret=reddit-certs --data-claim=graphs --out-claim=runs --data=/data/reddit --out=/out/reddit | kubectl apply -f -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.launchSettings(cmd)
			if err != nil {
				return err
			}
			k.Graphs, k.Params, k.MaxRestarts, k.Ready, k.NodeSelector = f.servers, f.params, f.restarts, f.ready, selector
			if err := f.check(); err != nil {
				return err
			}
			return a.launchK8s(r, &k, &f, output)
		},
	}
	set := cmd.Flags()
	set.StringVar(&k.Name, "job", "dorylus", "`NAME` of the run and of its objects")
	set.StringVar(&k.Image, "image", "", "`IMAGE` with the program")
	set.IntVar(&f.servers, "servers", 2, "graph servers, each with a part of the graph")
	f.add(cmd, 5)
	set.StringVarP(&output, "output", "o", "yaml", "format of the manifest: yaml")
	set.StringVar(&k.API, "api", launch.JobSets, "kind of objects: jobset or job")
	set.StringVar(&k.Namespace, "namespace", "", "namespace (default: kubectl's)")
	set.StringVar(&k.Program, "program", "dorylus-engine", "`PATH` of this program in the image")
	set.IntVar(&k.Port, "port", member.DefaultPort, "port of all servers")
	set.StringVar(&k.CertsSecret, "certs-secret", "", "`SECRET` with the files of certs dev")
	set.StringVar(&k.DataClaim, "data-claim", "", "PersistentVolumeClaim that graph servers see as /data, read-only")
	set.StringVar(&k.OutClaim, "out-claim", "", "PersistentVolumeClaim that graph servers see as /out")
	set.StringVar(&k.EnvSecret, "env-secret", "", "`SECRET` whose keys become variables, such as AWS_ACCESS_KEY_ID for s3://")
	set.StringVar(&k.ServiceAccount, "service-account", "", "ServiceAccount of the pods, for example one with a role for s3://")
	set.StringVar(&k.CPU, "cpu", "", "processors of a graph server, as 8 or 500m")
	set.StringVar(&k.Memory, "memory", "", "memory of a graph server, as 64Gi; one that needs more is killed, and named")
	set.StringVar(&k.ParamCPU, "param-cpu", "", "processors of a parameter server")
	set.StringVar(&k.ParamMemory, "param-memory", "", "memory of a parameter server")
	set.StringToStringVar(&selector, "node-selector", nil, "`LABEL=VALUE,...` of the nodes to run on")
	for _, name := range []string{"job", "image", "servers", "output", "api", "namespace", "program", "port", "certs-secret", "data-claim", "out-claim",
		"env-secret", "service-account", "cpu", "memory", "param-cpu", "param-memory", "node-selector"} {
		inGroup(set.Lookup(name), groupCluster)
	}
	addSettings(cmd)
	return cmd
}

// launchK8s prints the manifest of k, whose graph servers train by r.
func (a *app) launchK8s(r *resolved, k *launch.Kubernetes, f *launchFlags, output string) error {
	c := &r.Config
	switch {
	case output != "yaml":
		return usagef("--output=%s: choose yaml", output)
	case !c.DryRun:
		return usagef("launch k8s only prints a manifest: add --dry-run, and hand the output to kubectl apply -f -")
	case c.JSON:
		return usagef("--json: the manifest is YAML; the run's summary is in --out")
	case c.Runs > 1:
		return usagef("--runs=%d: a JobSet trains once; print one for each --seed", c.Runs)
	case c.Resume != "":
		return usagef("--resume=%s: name the folder by --out: servers go on with what is in it", c.Resume)
	case c.OutDir == "":
		return usagef("--out: name a folder such as /out/RUN, on --out-claim: a run that is started again goes on from it")
	case !k.Kept(c.OutDir):
		return usagef("--out=%s is lost with its pod; name one below /out, and the claim by --out-claim", c.OutDir)
	case !builtIn(c.Data) && !(k.DataClaim != "" && strings.HasPrefix(c.Data, launch.DataFolder+"/")) && !strings.HasPrefix(c.Data, launch.OutFolder+"/"):
		return usagef("--data=%s is not in a pod; name a store below /data, and the claim by --data-claim", c.Data)
	}
	if c.Mode == "gpu" {
		k.GPUs = 1
	}
	k.Common = f.common(c)[1:] // the manifest has --ready-timeout
	k.Train = append(withoutDevice(r.trainFlags()), fmt.Sprintf("--seed=%d", c.Seed), "--out="+c.OutDir, "--progress=plain")
	text, err := k.Manifest()
	if err != nil {
		return usage(err)
	}
	_, err = a.out.Write(text)
	return err
}

// builtIn says that a pod has the data without a volume.
func builtIn(data string) bool {
	return data == "cora" || strings.HasPrefix(data, "synth:") || strings.Contains(data, "://")
}

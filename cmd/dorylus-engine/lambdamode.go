package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"time"

	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/lambda/fleet"
	"dorylus/lambda/invoke"
	"dorylus/lambda/local"
	"dorylus/lambda/rpc"
	"dorylus/lambda/tuner"
	"dorylus/lambda/wire"
)

// lambdaMode is all that --mode=lambda has running besides the engine.
type lambdaMode struct {
	fleet   *fleet.Fleet
	backend engine.Backend // the fleet, perhaps with a tuner
	server  *rpc.Server
	service *local.Service // nil: another service is asked for workers
	closed  bool
}

// certificateLife is how long a run's certificate is good for: longer than any run.
const certificateLife = 30 * 24 * time.Hour

// openLambda starts what workers come to, and the local service if that is to bring
// them. It calls no worker yet.
func openLambda(ctx context.Context, c *engine.Config, dev kernels.Device) (_ *lambdaMode, err error) {
	m := &lambdaMode{}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close(nil))
		}
	}()
	launch := invoke.Options{Function: c.LambdaFunction, Used: func(u engine.LambdaUsed) { m.fleet.Tell(u) }, Modelled: c.LambdaEndpoint != "aws", MemoryMB: c.LambdaMemory}
	var latency time.Duration
	switch c.LambdaEndpoint {
	case "aws":
	case "local":
		chaos, err := local.ParseChaos(c.Chaos)
		if err != nil {
			return nil, usage(fmt.Errorf("--%w", err))
		}
		latency = chaos.Latency
		if m.service, err = startLocal(c, chaos); err != nil {
			return nil, err
		}
		launch.Endpoint = m.service.Endpoint()
	default:
		launch.Endpoint = c.LambdaEndpoint
	}
	serve := func(conn wire.Conn, stop func()) error { return m.fleet.Serve(wire.Late(conn, latency), stop) }
	var port *port
	if c.LambdaTransport == "stream" {
		if port, err = openPort(c.LambdaAddress); err != nil {
			return nil, err
		}
		defer func() {
			if m.server == nil {
				port.Close()
			}
		}()
		launch.Addresses, launch.Certificate = []string{port.address}, port.text
	}
	caller, err := invoke.New(ctx, launch)
	if err != nil {
		return nil, err
	}
	var launcher fleet.Launcher = caller
	if c.LambdaTransport == "inline" {
		launcher = &invoke.Inline{Launcher: caller, Serve: serve}
	}
	start, most, fixed := workers(c)
	m.fleet, err = fleet.New(fleet.Options{
		Workers: start, Launcher: launcher, Device: dev, Precision: c.WirePrecision, OnNoWorkers: c.LambdaFallback, Held: caller.Held,
	})
	if err != nil {
		return nil, err
	}
	m.backend = m.fleet
	if !fixed {
		m.backend = fleet.Tune(m.fleet, cores(c), most, caller.Refused)
	}
	if port != nil { // nobody is let in before there is a fleet
		m.server = rpc.Listen(port.Listener, port.cert, serve)
	}
	return m, nil
}

// port is where workers call, and the certificate that they are shown.
type port struct {
	net.Listener
	address string
	cert    tls.Certificate
	text    string // PEM
}

// openPort opens the port under which workers reach address, or without one a free port
// of loopback.
func openPort(address string) (*port, error) {
	bind, hosts := "127.0.0.1:0", []string{"127.0.0.1"}
	if address != "" {
		host, number, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		bind, hosts = net.JoinHostPort("", number), []string{host}
	}
	p := &port{address: address}
	var err error
	if p.cert, p.text, err = rpc.Certificate(hosts, certificateLife); err != nil {
		return nil, err
	}
	if p.Listener, err = net.Listen("tcp", bind); err != nil {
		return nil, fmt.Errorf("listen for workers: %w; choose a free port by --lambda-address=HOST:PORT", err)
	}
	if address == "" {
		p.address = p.Addr().String()
	}
	return p, nil
}

// startLocal starts the embedded service with the worker that lies beside this program.
func startLocal(c *engine.Config, chaos local.Chaos) (*local.Service, error) {
	command, err := workerCommand("")
	if err != nil {
		return nil, err
	}
	return local.Start(context.Background(), local.Options{
		Functions: map[string]local.Function{c.LambdaFunction: {Command: command, MemoryMB: c.LambdaMemory}},
		Chaos:     chaos,
	})
}

// workers is how many are wanted at the start, and, if that is not fixed, at most: where
// they run on this machine, no more than it has processors, but two; elsewhere one for
// each interval, which is 0 here.
func workers(c *engine.Config) (start, most int, fixed bool) {
	if n, err := strconv.Atoi(c.Lambdas); err == nil {
		return n, n, true
	}
	if c.LambdaEndpoint == "local" {
		n := max(runtime.NumCPU(), 2)
		return n, n, false
	}
	return tuner.MostAtStart, 0, false
}

// cores are the graph server's own workers.
func cores(c *engine.Config) int {
	if c.Threads > 0 {
		return c.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// close ends the workers and then what they came to, and tells l what they were billed,
// once.
func (m *lambdaMode) close(l engine.Listener) error {
	if m.closed {
		return nil
	}
	m.closed = true
	var errs []error
	if m.fleet != nil {
		errs = append(errs, m.fleet.Close())
	}
	if m.server != nil {
		errs = append(errs, m.server.Close())
	}
	if m.service != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, m.service.Close(ctx))
	}
	if l != nil && m.fleet != nil {
		for _, e := range m.fleet.Take() { // the last bills come with the workers' ends
			l.Event(e)
		}
	}
	return errors.Join(errs...)
}

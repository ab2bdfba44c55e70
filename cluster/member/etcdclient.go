package member

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// leaseSeconds is how long etcd keeps the entry of a process that is gone.
const leaseSeconds = 5

// etcd is a Registry: an entry is a key under a lease, its age the revision in which it
// was created.
type etcd struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	stop   context.CancelFunc
	alive  chan struct{} // closed when the keep-alives have ended
}

// OpenEtcd is the registry at urls, several of one cluster with commas between.
func OpenEtcd(ctx context.Context, urls string) (Registry, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(urls, ","), DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", urls, err)
	}
	look, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := c.Get(look, "dorylus/"); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to etcd at %s: %w", urls, err)
	}
	return &etcd{client: c}, nil
}

// Register implements Registry.
func (e *etcd) Register(ctx context.Context, key, value string) error {
	lease, err := e.client.Grant(ctx, leaseSeconds)
	if err != nil {
		return err
	}
	e.lease = lease.ID
	life, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the wait for the others
	beats, err := e.client.KeepAlive(life, lease.ID)
	if err != nil {
		stop()
		return err
	}
	e.stop, e.alive = stop, make(chan struct{})
	go func() {
		defer close(e.alive)
		for range beats {
		}
	}()
	free := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	r, err := e.client.Txn(ctx).If(free).Then(clientv3.OpPut(key, value, clientv3.WithLease(lease.ID))).Commit()
	if err == nil && !r.Succeeded {
		err = fmt.Errorf("key %s is there already", key)
	}
	return err
}

// Watch implements Registry.
func (e *etcd) Watch(ctx context.Context, prefix string) (<-chan []Entry, error) {
	byAge := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
	get := func() ([]Entry, int64, error) {
		r, err := e.client.Get(ctx, prefix, clientv3.WithPrefix(), byAge)
		if err != nil {
			return nil, 0, err
		}
		var all []Entry
		for _, kv := range r.Kvs {
			all = append(all, Entry{string(kv.Key), string(kv.Value)})
		}
		return all, r.Header.Revision, nil
	}
	first, revision, err := get()
	if err != nil {
		return nil, err
	}
	changes := e.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	out := make(chan []Entry, 1)
	out <- first
	go func() {
		defer close(out)
		for range changes {
			now, _, err := get()
			if err != nil {
				return
			}
			select {
			case out <- now:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// Close implements Registry.
func (e *etcd) Close() error {
	if e.stop != nil {
		e.stop()
		<-e.alive
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, _ = e.client.Revoke(ctx, e.lease) // else it ends by itself
	}
	return e.client.Close()
}

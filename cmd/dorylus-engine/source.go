package main

import (
	"context"
	"fmt"

	"dorylus/cluster/blob"
	"dorylus/engine/dataset"
)

// openSource reads a data set from files, or below s3://BUCKET. Files beside the
// source are then in that bucket too.
func openSource(ctx context.Context, src string, opt dataset.Options) (*dataset.Raw, error) {
	if !blob.Is(src) {
		return dataset.Open(ctx, src, opt)
	}
	bucket, key, err := blob.Split(src)
	if err != nil {
		return nil, err
	}
	for _, path := range []*string{&opt.Edges, &opt.Features, &opt.Labels, &opt.Masks, &opt.SplitFile} {
		if !blob.Is(*path) {
			continue
		}
		other, beside, err := blob.Split(*path)
		if err != nil {
			return nil, err
		}
		if other != bucket {
			return nil, fmt.Errorf("read %s: it is in another bucket than %s: copy it into %s", *path, src, bucket)
		}
		*path = beside
	}
	if opt.FS, err = blob.FS(ctx, blob.Scheme+bucket, blob.Options{}); err != nil {
		return nil, err
	}
	return dataset.Open(ctx, key, opt)
}

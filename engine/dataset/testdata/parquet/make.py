"""Writes the Parquet files of this folder, as another program writes them. Made with pyarrow 19:
    python make.py
"""
import pyarrow as pa
import pyarrow.parquet as pq

edges = pa.table({"src": ["b", "a", "c"], "dst": ["a", "c", "b"], "weight": pa.array([0.5, 1, 2], pa.float32())})
pq.write_table(edges, "edges.parquet", compression="zstd", row_group_size=2)
nodes = pa.table({
    "id": ["a", "b", "c", "d"],
    "label": pa.array([1, 0, None, 2], pa.int64()),
    "x": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.float32(), 2)),
    "age": pa.array([10, 20, 30, 40], pa.int16()),
    "comment": ["p", "q", "r", "s"],
    "split": ["train", "val", None, "test"],
})
pq.write_table(nodes, "nodes.parquet", row_group_size=3)
pq.write_table(pa.table({"from": pa.array([0, 7, 7], pa.int64()), "to": pa.array([7, 3, 0], pa.int64())}), "ids.parquet",
               compression="snappy", version="2.6", data_page_version="2.0", column_encoding={"from": "DELTA_BINARY_PACKED", "to": "PLAIN"}, use_dictionary=False)

"""The raw protobuf classes under google-cloud-firestore's proto-plus types, which cost several times as much to use."""

from __future__ import annotations

from typing import Any

from google.cloud.firestore_v1 import types

# Made at run time from descriptors: `Any` is all that a type checker can know of them.
Proto = Any

Value: Proto = types.Value.pb()
Write: Proto = types.Write.pb()
StructuredQuery: Proto = types.StructuredQuery.pb()
BatchGetDocumentsRequest: Proto = types.BatchGetDocumentsRequest.pb()
BatchGetDocumentsResponse: Proto = types.BatchGetDocumentsResponse.pb()
CommitRequest: Proto = types.CommitRequest.pb()
CommitResponse: Proto = types.CommitResponse.pb()
RunQueryRequest: Proto = types.RunQueryRequest.pb()
RunQueryResponse: Proto = types.RunQueryResponse.pb()
RunAggregationQueryRequest: Proto = types.RunAggregationQueryRequest.pb()
RunAggregationQueryResponse: Proto = types.RunAggregationQueryResponse.pb()
ListenRequest: Proto = types.ListenRequest.pb()
ListenResponse: Proto = types.ListenResponse.pb()

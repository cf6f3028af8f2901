"""The raw protobuf classes under google-cloud-firestore's proto-plus types.

Wrapping a message in proto-plus costs several times the parse, so the engine never does it.
"""

from __future__ import annotations

from typing import Any

from google.cloud.firestore_v1 import types

# The classes are made at run time from descriptors, so `Any` is all that a type checker can know of them.
Proto = Any

Document: Proto = types.Document.pb()
Value: Proto = types.Value.pb()
Write: Proto = types.Write.pb()
WriteResult: Proto = types.WriteResult.pb()
StructuredQuery: Proto = types.StructuredQuery.pb()
DocumentMask: Proto = types.DocumentMask.pb()
DocumentTransform: Proto = types.DocumentTransform.pb()

GetDocumentRequest: Proto = types.GetDocumentRequest.pb()
ListDocumentsRequest: Proto = types.ListDocumentsRequest.pb()
ListDocumentsResponse: Proto = types.ListDocumentsResponse.pb()
CreateDocumentRequest: Proto = types.CreateDocumentRequest.pb()
UpdateDocumentRequest: Proto = types.UpdateDocumentRequest.pb()
DeleteDocumentRequest: Proto = types.DeleteDocumentRequest.pb()
BatchGetDocumentsRequest: Proto = types.BatchGetDocumentsRequest.pb()
BatchGetDocumentsResponse: Proto = types.BatchGetDocumentsResponse.pb()
BeginTransactionRequest: Proto = types.BeginTransactionRequest.pb()
BeginTransactionResponse: Proto = types.BeginTransactionResponse.pb()
TransactionOptions: Proto = types.TransactionOptions.pb()
CommitRequest: Proto = types.CommitRequest.pb()
CommitResponse: Proto = types.CommitResponse.pb()
RollbackRequest: Proto = types.RollbackRequest.pb()
RunQueryRequest: Proto = types.RunQueryRequest.pb()
RunQueryResponse: Proto = types.RunQueryResponse.pb()
RunAggregationQueryRequest: Proto = types.RunAggregationQueryRequest.pb()
RunAggregationQueryResponse: Proto = types.RunAggregationQueryResponse.pb()
ExplainMetrics: Proto = types.ExplainMetrics.pb()
PartitionQueryRequest: Proto = types.PartitionQueryRequest.pb()
PartitionQueryResponse: Proto = types.PartitionQueryResponse.pb()
WriteRequest: Proto = types.WriteRequest.pb()
WriteResponse: Proto = types.WriteResponse.pb()
ListenRequest: Proto = types.ListenRequest.pb()
ListenResponse: Proto = types.ListenResponse.pb()
Target: Proto = types.Target.pb()
TargetChange: Proto = types.TargetChange.pb()
ListCollectionIdsRequest: Proto = types.ListCollectionIdsRequest.pb()
ListCollectionIdsResponse: Proto = types.ListCollectionIdsResponse.pb()
BatchWriteRequest: Proto = types.BatchWriteRequest.pb()
BatchWriteResponse: Proto = types.BatchWriteResponse.pb()
ExecutePipelineRequest: Proto = types.ExecutePipelineRequest.pb()

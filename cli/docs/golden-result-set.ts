// A result set as an example for those who write a reader of their own: its results, the delivery, and the key that
// signed it. A test makes the delivery anew from the results and compares.
import type { ResultSet } from '../../src/job/answer/result-set.ts'

/** Requests whose digest results name in `answers`. A test holds the digests. */
export const ANSWERS: readonly { kind: string; request: Record<string, unknown> }[] = [
  {
    kind: 'token-lifecycle',
    request: {
      id: 't01jd3x8z7q2m4n6p8r0s2t4v6w',
      action: 'SUSPEND',
    },
  },
  {
    kind: 'transaction-batch',
    request: {
      batch_id: 'july',
      chunk: 0,
      last: true,
      transactions: [{ line: 2, transaction: { merchant_reference: 'Müller', amount: '-5' } }],
    },
  },
]

export const RESULTS: ResultSet = [
  {
    v: 1,
    type: 'result',
    result_id: '0d2f7a53-7b53-5a0f-8f29-0b7b4f6f5e01',
    receipt_id: '5b0c6c0e-2f0a-5d4b-9d1a-5d3b0a1f7c02',
    revision: 1,
    kind: 'token-lifecycle',
    jti: 'order-1',
    envelope: 'zczl30GJrZ2a6TyWfDr6pImTz8ocG-PzjSM8xSmSiuw',
    answers: '9yJ9uXMIKXz38vV2ZKKUOo_5AT38ul_bFq2RA4ptDy4',
    reference: 'Müller',
    status: 'SUCCEEDED',
    code: 204,
    record: { id: 't01jd3x8z7q2m4n6p8r0s2t4v6w', token_status: 'SUSPENDED' },
    attempt: 1,
    accepted_at: '2026-11-23T12:00:00.000Z',
    completed_at: '2026-11-23T12:00:00.021Z',
  },
  {
    v: 1,
    type: 'result',
    result_id: '0d2f7a53-7b53-5a0f-8f29-0b7b4f6f5e03',
    receipt_id: '5b0c6c0e-2f0a-5d4b-9d1a-5d3b0a1f7c04',
    revision: 2,
    kind: 'token-create',
    jti: 'order-2',
    envelope: 'xzf6QRxZYPwqEOslyl9na-pz2stwynbp90pIuXikmqY',
    answers: 'W4kamkqlTY46JNpKyv_Awx4Y9WduZWIEPekZ0VMZYZo',
    status: 'FAILED',
    code: 400,
    error: {
      code: 400,
      message: 'At least one parameter is invalid; see details.',
      details: { 'body.encrypted_card': { message: 'The card number fails the Luhn check.', code: 'pan_luhn' } },
      timestamp: 1_795_435_200_021,
      reversal_status: 'NONE',
    },
    attempt: 1,
    accepted_at: '2026-11-23T12:00:00.000Z',
    completed_at: '2026-11-23T12:00:00.021Z',
  },
]

/** The client for which the example is signed. */
export const CLIENT = 'cabcdefghijklmnopqrstuvwxy'

/** `body` is the results as JSON without blanks; this is the member `jws` beside it. */
export const JWS =
  'eyJhbGciOiJFZERTQSIsImtpZCI6ImdvbGRlbiIsInR5cCI6InRva2VubWlsbC1yZXN1bHQtc2V0K2p3dCJ9.eyJhdWQiOiJjYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eSIsInJlc3VsdHMiOjIsInNoYTI1NiI6IlNxSkh1VWNGcnhReEJqWXBKVWZkZTRRVWl2QklManJja1RBeldLMk03YmcifQ.nvbT-wQtyjsQP2_RXXO0ngUVz4-T-IOYljSmbkwEmCc3FknxmolGuQAkjWvbMoqJHjONQlOXzQQ8UcihPvwJDQ'

// Source references in the OpenAPI document: their properties, and examples of each operation.
import type { Notes } from '../../../src/job/describe/annotate.ts'
import { json, type OperationNotes } from './notes.ts'
import { RECEIPT, REUSE_TOKEN, SCOPE } from './samples.ts'

export const REFERENCE_PROPERTIES: Notes = {
  'lookUpReferences.body.token_scope': 'UUID of the token scope whose owners are looked up.',
  'body.references': 'The owners that are looked up, 1 to 1,000.',
  'getReferences.200.references': 'The owners of the card, oldest first; empty where none was named.',
  'getReferences.200.next': 'The value of `after` for the next page; absent where there are no more owners.',
  'lookUpReferences.200.references': 'One answer for each owner that was asked for, in that order.',
  found: 'Whether this owner has a token.',
  reference_outcome:
    '`ADDED`: a new owner. `CHANGED`: something of it changed. `MOVED`: the owner had another token under this id. `UNCHANGED`: all of it was known.',
  previous_token:
    'With `MOVED`: the token that the owner had under this id. Absent where that token is for analytics only.',
}

const anna = {
  provider: 'stripe',
  provider_account: 'acct_1Example',
  customer_id: 'cus_Anna',
  card_id: 'card_1',
}
const onFile = {
  ...anna,
  network_transaction_id: 'MCC0000010131',
  transaction_link_id: 'kHj2_a9-0QwErTyUiOpAsD',
  agreement: 'RECURRING',
  agreed_by: 'ONLINE',
  agreed_on: '2025-03-01',
  is_default: true,
}
const kept = { network_transaction_ids: ['MCC0000010131'] }
const id = { id: REUSE_TOKEN }
const unknown = ['token_not_found', 'params.id'] as const

export const REFERENCE_OPERATIONS: Readonly<Record<string, OperationNotes>> = {
  putReference: {
    description:
      'Names an owner of the card of this token, or changes what must travel with it; fields that are absent stay as they are. An owner has one card under one `card_id`: one that is known at another token moves to this one. With `Prefer: respond-async` the answer is 202.',
    parameters: { ...id, 'idempotency-key': 'owner-2026-0131-1' },
    body: json({ owner: onFile }),
    answers: {
      200: {
        description: 'The token, and what became of the owner.',
        examples: json({
          added: {
            bin: '55555555',
            last_four: '4444',
            expiry_month: 12,
            expiry_year: 2030,
            updated_at: '2026-01-31',
            created_at: '2026-01-31',
            token_status: 'ACTIVE',
            reference_outcome: 'ADDED',
          },
          'repeat after a deletion': { reuse_token: REUSE_TOKEN, token_status: 'DELETED' },
        }),
      },
      202: {
        description: 'Stored; the answer comes later, at Location.',
        examples: json({ accepted: { receipt_id: RECEIPT, status: 'PENDING' } }),
      },
    },
    refusals: { 400: ['field_required', 'body.card_id'], 404: unknown },
  },
  getReferences: {
    description:
      "Whose card the token stands for, and what must travel with it to another provider. Only tokens of the client's entities are shown; billing addresses never are. One answer has at most `limit` owners; `next` says that there are more.",
    parameters: id,
    answers: {
      200: { description: 'The owners.', examples: json({ owners: { references: [{ ...onFile, ...kept }] } }) },
    },
    refusals: { 400: ['field_length', 'params.id'], 404: unknown },
  },
  lookUpReferences: {
    description:
      'Finds tokens by the ids under which a provider knew customers and cards, up to 1,000 at once. The body may have 1 MiB. Ids stand in the body, since paths and queries are logged by proxies. An owner is found under exactly the ids that it was added with. A token that is for analytics only is found without `reuse_token`.',
    body: json({ owners: { token_scope: SCOPE, references: [anna, { provider: 'stripe', card_id: 'card_2' }] } }),
    answers: {
      200: {
        description: 'The tokens.',
        examples: json({
          'one of two': {
            references: [
              { found: true, reuse_token: REUSE_TOKEN, token_status: 'ACTIVE', ...onFile, ...kept },
              { found: false },
            ],
          },
        }),
      },
    },
    refusals: { 400: ['field_required', 'body.references'], 403: ['scope_forbidden', 'body.token_scope'] },
  },
}

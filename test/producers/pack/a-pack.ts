import type { Pack } from '../../../producers/pack/pack.ts'
import { noFileCounts } from '../../../producers/rows/file-outcome.ts'

const file = { name: 'x', sha256: 'a'.repeat(64), bytes: 1 }
const signer = { kid: 'k', thumbprint: 'k' }
const counts = { ...noFileCounts(), CREATED: 5, DUPLICATE: 1, REJECTED: 2, CANCELLED: 1, SKIPPED: 4 }
const rows = 13
const cell = { brand: null, expiry_year: null, reason: null }
const leftOut = { batch_id: 'b', line: 2, item: null, reference: null, reason: 'changed' }
const vault = {
  migration: 'spring',
  computed_at: '2030-01-01T00:00:00.000Z',
  rows: 5,
  sha256: 'b'.repeat(64),
  by_brand: {},
  exceptions: { rows: 1, by_reason: { changed: 1 }, listed: [leftOut] },
}
/** A pack of one batch with a total; all its counts agree. */
export const aPack = {
  pack: 1 as const,
  made_at: '2030-01-02T00:00:00.000Z',
  made_by: { client_id: 'acme', os_user: 'meyer' },
  signer,
  batches: [
    {
      file,
      signer,
      manifest: {
        reasons: {},
        repairs: {},
        operator: { client_id: 'c' },
        pgp_keys: null,
        v: 1 as const,
        batch_id: 'b',
        dry_run: false,
        input: file,
        results: file,
        options: {},
        rows,
        counts,
        started_at: '2030-01-01T00:00:00.000Z',
        ended_at: '2030-01-01T01:00:00.000Z',
      },
    },
  ],
  rows,
  counts,
  cells: [
    ...(['CREATED', 'DUPLICATE', 'REJECTED', 'CANCELLED', 'SKIPPED'] as const).map(outcome => ({
      ...cell,
      outcome,
      rows: counts[outcome],
    })),
  ],
  exceptions: {
    rows: 4,
    decided: 3,
    open: 1,
    by_decision: [
      { decision: 'drop', rows: 1 },
      { decision: 'resend', rows: 2 },
    ],
    unused_decisions: { count: 0, lines: [] },
    listed_open: [],
    listed_decided: [],
  },
  repairs: {},
  leave_out: file,
  total: { vault },
} satisfies Pack

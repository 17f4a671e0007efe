// The PDF of a large pack: many rows, long texts, nothing recorded.
import { describe, expect, it } from 'vitest'
import type { Pack } from '../../../producers/pack/pack.ts'
import { paperOf } from '../../../producers/pack/paper/paper.ts'
import { noFileCounts } from '../../../producers/rows/file-outcome.ts'
import { pdfContent, pdfWords } from '../../report/pdf-words.ts'

const sha256 = 'a'.repeat(64)
const file = { name: `${'a-long-name-'.repeat(20)}.csv`, sha256, bytes: 12_345_678_901 }
const signer = { kid: 'k'.repeat(43), thumbprint: 'k'.repeat(43) }
const counts = { ...noFileCounts(), CREATED: 9_876_543_210, REJECTED: 500 }
const rows = counts.CREATED + counts.REJECTED
const batchOf = (batch_id: string): Pack['batches'][number] => ({
  file,
  signer,
  manifest: {
    reasons: {},
    repairs: {},
    operator: { client_id: 'c' },
    pgp_keys: null,
    v: 1,
    batch_id,
    dry_run: false,
    input: file,
    results: file,
    options: {},
    rows,
    counts,
    command: ['migrate', 'x'.repeat(3_000)],
    started_at: '2030-01-01T00:00:00.000Z',
    ended_at: '2030-01-01T01:00:00.000Z',
  },
})
const exceptionOf = (line: number) => ({
  batch_id: 'b-1',
  line,
  item: null,
  reference: 'Žofie '.repeat(1 + (line % 20)),
  kind: 'REJECTED' as const,
  reason: 'pan_luhn',
})
const decision = { decision: 'drop', by: 'Ann', on: '2030-01-31', note: 'word '.repeat(99) }
const PACK: Pack = {
  pack: 1,
  made_at: '2030-01-02T00:00:00.000Z',
  made_by: { client_id: 'acme', os_user: 'meyer' },
  signer,
  batches: [batchOf('b-1'), batchOf('b-2')],
  rows,
  counts,
  cells: Array.from({ length: 150 }, (_, index) => ({
    brand: 'VISA',
    expiry_year: `${2000 + index}`,
    outcome: 'CREATED' as const,
    reason: null,
    rows: 98_765_432,
  })),
  repairs: {},
  leave_out: file,
  exceptions: {
    rows: 1_050,
    decided: 50,
    open: 1_000,
    by_decision: [{ decision: 'drop', rows: 50 }],
    unused_decisions: { count: 0, lines: [] },
    listed_open: Array.from({ length: 1_000 }, (_, index) => exceptionOf(index + 2)),
    listed_decided: Array.from({ length: 50 }, (_, index) => ({ ...exceptionOf(index + 2_000), ...decision })),
  },
}

describe('the paper of a pack', () => {
  it('numbers its pages, repeats the headings of tables, sets numbers whole, and says how much it leaves out', async () => {
    const words = pdfWords(await paperOf({ pack: PACK, sha256 })).split('\n')
    const pages = words.filter(word => word.startsWith('Page '))
    expect(pages.at(-1)).toBe(`Page ${pages.length} of ${pages.length}`)
    expect(words.filter(word => word === `Pack ${sha256}`)).toHaveLength(pages.length)
    for (const heading of ['Expiry year', 'Reference'])
      expect(words.filter(word => word === heading).length).toBeGreaterThan(2)
    for (const whole of ['9,876,543,710', '98,765,432', '12,345,678,901', sha256]) expect(words).toContain(whole)
    const last = words.slice(words.indexOf(pages.at(-2) ?? '') + 1)
    expect(last).toContain(`Both sides have read the pack with the SHA-256 ${sha256}.`)
    expect(words).toContain('800 more.')
    expect(words.filter(word => word === '201')).toHaveLength(1)
    expect(words).not.toContain('202')
    expect(words).toContain('For the receiver of the cards')
  })

  it('has the same bytes when it is written again', async () => {
    const [first, second] = [await paperOf({ pack: PACK, sha256 }), await paperOf({ pack: PACK, sha256 })]
    expect(first.equals(second)).toBe(true)
  })

  it('draws no text below the foot of a page', async () => {
    const pdf = await paperOf({ pack: PACK, sha256 })
    const lowest = Math.min(...placesOf(pdf))
    // The footer's line of text is the lowest: the margin of 36 points, and what is above it.
    expect(lowest).toBeGreaterThan(36)
  })
})

/** The heights above the page's lower edge at which texts are drawn. */
function placesOf(pdf: Buffer): number[] {
  return [...pdfContent(pdf).matchAll(/1 0 0 1 [\d.-]+ ([\d.-]+) Tm/g)].map(([, y]) => Number(y))
}

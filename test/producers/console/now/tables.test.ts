// The lists of Now: each row has ids of its own, and a figure that nobody measured lately is a question mark.
import { describe, expect, it } from 'vitest'
import { type Facts, shownKinds, type Whole } from '../../../../producers/console/now/facts.ts'
import { contentOf } from '../../../../producers/console/now/now.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'

const NOW = Date.UTC(2026, 10, 23, 12, 3, 20)
const process = (host: string, role = 'bulk') => ({
  host,
  role,
  version: '1.0.0',
  silentMs: 900,
  kinds: [...CATALOGUE.kinds],
})
const textsOf = (whole: Partial<Whole>, pulse: Partial<Facts['pulse']> = {}) =>
  contentOf({
    now: NOW,
    batches: [],
    areMore: false,
    pulse: { watchedMs: 3_000, heardMs: 900, batchesHeardMs: 900, areServersOut: false, isWhole: true, ...pulse },
    whole: {
      kinds: shownKinds(CATALOGUE),
      processes: [],
      checks: [],
      queues: [],
      recent: [],
      waits: [],
      rows: [],
      minutes: [],
      ...whole,
    },
  }).texts.texts

describe('hosts', () => {
  it('have rows of their own, however alike their names are', () => {
    const processes = ['db.1', 'db_1', 'db-1', 'db_2e_1', 'dß1'].map(host => process(host))
    const texts = textsOf({ processes })
    expect(Object.keys(texts).filter(key => /^host-.*-beat$/.test(key))).toHaveLength(5)
  })

  it('have ids without spaces and signs', () => {
    const texts = textsOf({ processes: [process('a b:"c"'), process('plain')] })
    for (const key of Object.keys(texts)) expect(key).toMatch(/^[\w@-]+$/)
  })
})

describe('within which time 95 % of the jobs began', () => {
  const waits = [{ kind: 'act', p95Ms: 42 }]
  const shown = (pulse?: Partial<Facts['pulse']>) => textsOf({ waits }, pulse)['kind-act-p95']

  it('is shown while a worker is heard and a scheduler looks', () => {
    expect(shown()).toBe('42 ms')
  })

  it.each([
    ['no worker is heard', { heardMs: 8_001 }],
    ['no worker is there', { heardMs: null }],
    ['no scheduler looks', { watchedMs: 10_001 }],
    ['no scheduler ever looked', { watchedMs: null }],
  ])('is not known if %s', (_, pulse) => {
    expect(shown(pulse)).toBe('?')
  })
})

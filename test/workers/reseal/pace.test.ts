import { describe, expect, it } from 'vitest'
import { type Load, openPace } from '../../../workers/reseal/pace.ts'

const OPTIONS = { rowsPerSecondMax: 1_000, replicaLagMsMax: 5_000, workMsMax: 250, walBytesPerSecondMax: 1_000_000 }
const CALM: Load = { replicaLagMs: null, walBytes: 0, rowsLive: 1_000_000, rowsDead: 0, workMs: 250 }

function paceAt(options = OPTIONS) {
  const clock = { ms: 0 }
  return { clock, pace: openPace(options, () => clock.ms) }
}

describe('the pace of a re-encryption', () => {
  it('is the rows per second that are allowed, less what a set took', () => {
    const { clock, pace } = paceAt()
    clock.ms = 100
    expect(pace.after({ scanned: 500, found: 500 })).toBe(400)
    clock.ms = 500
    expect(pace.after({ scanned: 500, found: 500 })).toBe(500)
  })

  it('does not make up for slow sets by fast ones', () => {
    const { clock, pace } = paceAt()
    clock.ms = 10_000
    expect(pace.after({ scanned: 500, found: 500 })).toBe(0)
    expect(pace.after({ scanned: 500, found: 500 })).toBe(500)
  })

  it('counts rows that are only looked at, at a small part', () => {
    const { pace } = paceAt()
    expect(pace.after({ scanned: 10_000, found: 0 })).toBe(500)
  })

  it('stops while a replica is behind, and looks once a second', async () => {
    const { clock, pace } = paceAt()
    let lag: number | null = 6_000
    let looks = 0
    const measure = async () => {
      looks += 1
      return { ...CALM, replicaLagMs: lag }
    }
    expect(await pace.isBehind(measure)).toBe(true)
    lag = null
    expect(await pace.isBehind(measure)).toBe(true)
    expect(looks).toBe(1)
    clock.ms = 1_000
    expect(await pace.isBehind(measure)).toBe(false)
  })

  it.each<[string, Partial<Load>]>([
    ['jobs on cards are slow', { workMs: 251 }],
    ['autovacuum does not keep up', { rowsLive: 40_000, rowsDead: 20_001 }],
  ])('halves every five seconds while %s, down to a 64th, and comes back', async (reason, load) => {
    const { clock, pace } = paceAt()
    const look = (found: Partial<Load>) => {
      clock.ms += 5_000
      return pace.isBehind(async () => ({ ...CALM, ...found }))
    }
    await look(load)
    expect(pace.share()).toEqual({ share: 0.5, reasons: [reason] })
    // The first set took longer than the pace requires.
    expect(pace.after({ scanned: 500, found: 500 })).toBe(0)
    expect(pace.after({ scanned: 500, found: 500 })).toBe(1_000)
    for (let time = 0; time < 10; time++) await look(load)
    expect(pace.share().share).toBe(1 / 64)
    await look({})
    expect(pace.share()).toEqual({ share: 1.5 / 64, reasons: [] })
    for (let time = 0; time < 10; time++) await look({})
    expect(pace.share().share).toBe(1)
  })

  it('goes slower while the store writes more WAL than is allowed, whoever causes it', async () => {
    const { clock, pace } = paceAt()
    const look = (walBytes: number) => {
      clock.ms += 5_000
      return pace.isBehind(async () => ({ ...CALM, walBytes }))
    }
    // The first measurement has none to be compared with.
    await look(9e12)
    expect(pace.share().share).toBe(1)
    await look(9e12 + 5 * 1_000_000)
    expect(pace.share().share).toBe(1)
    await look(9e12 + 11 * 1_000_000)
    expect(pace.share()).toEqual({ share: 0.5, reasons: ['the store writes much WAL'] })
  })

  it('does not mind dead rows of a small table, nor workers that tell nothing', async () => {
    const { pace } = paceAt()
    await pace.isBehind(async () => ({ ...CALM, rowsLive: 100, rowsDead: 9_999, workMs: null }))
    expect(pace.share()).toEqual({ share: 1, reasons: [] })
    await pace.isBehind(async () => undefined)
    expect(pace.share()).toEqual({ share: 1, reasons: [] })
  })

  it('is told in rows looked at per second, of the last seconds', () => {
    const { clock, pace } = paceAt()
    pace.after({ scanned: 2_000, found: 0 })
    expect(pace.rate()).toBeNull()
    clock.ms = 5_000
    pace.after({ scanned: 3_000, found: 0 })
    expect(pace.rate()).toBe(1_000)
  })
})

// Rows that name owners of cards pass only while every live worker understands them.
import { describe, expect, it } from 'vitest'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { openOnFileGate } from '../../../producers/migrate/on-file-gate.ts'
import { BUILT_IN } from '../../../producers/rows/profile/built-in.ts'
import { parseProfile } from '../../../producers/rows/profile/profile.ts'
import { ConfigError } from '../../../src/config.ts'
import { until } from '../../support/until.ts'
import { silent } from '../bundle.ts'

/** `named`: what workers say they understand, reading by reading; the last one stands. */
function gateOf(
  named: readonly (readonly string[])[],
  sent: Partial<Parameters<typeof openOnFileGate>[0]> = { profile: BUILT_IN.square },
  { stop = new AbortController(), workers = async () => 1, ...more }: Partial<Surroundings> = {},
) {
  let readings = 0
  const told: string[] = []
  const read = async () => named[Math.min(readings++, named.length - 1)] ?? []
  const deps = {
    ...{ features: read, featureWaitMs: 150, log: silent, stop: stop.signal, queues: { workersOf: workers } },
    ...{ stream: { write: (line: string) => told.push(line) }, ...more },
  } as unknown as FileRunDeps
  return {
    gate: openOnFileGate({ recordKind: 'token-create', profile: undefined, onConflict: 'update', ...sent }, deps),
    readings: () => readings,
    told,
  }
}

interface Surroundings {
  stop: AbortController
  /** How many workers listen. */
  workers: () => Promise<number>
  features: FileRunDeps['features']
  featureWaitMs: number
  giveUpAfterMs: number
}

describe('the gate of rows with owners', () => {
  it('opens where all workers understand them', async () => {
    const { gate } = gateOf([['traceparent', 'on_file']])
    await gate.pass()
    await gate.pass()
    await gate.close()
  })

  it('stays shut where one does not, and says what to do', async () => {
    const { gate } = gateOf([['traceparent']])
    await expect(gate.pass()).rejects.toThrow(ConfigError)
    await expect(gate.pass()).rejects.toThrow('upgrade all workers to this release')
    await gate.close()
  })

  it('stays shut in the same way for a file of source times, which needs a feature of its own', async () => {
    const sent = { profile: undefined, onConflict: 'newest' } as const
    const known = gateOf([['newest']], sent)
    await known.gate.pass()
    await known.gate.close()
    const { gate } = gateOf([['traceparent', 'on_file']], sent)
    await expect(gate.pass()).rejects.toThrow('--on-conflict newest: upgrade all workers')
    await gate.close()
  })

  it('stays shut in the same way for a file that releases owners', async () => {
    const known = gateOf([['on_file']], { recordKind: 'reference' })
    await known.gate.pass()
    await known.gate.close()
    const { gate } = gateOf([['traceparent']], { recordKind: 'reference' })
    await expect(gate.pass()).rejects.toThrow(ConfigError)
    await expect(gate.pass()).rejects.toThrow('the release of owners')
    await gate.close()
  })

  it('lets a run that is to stop do so', async () => {
    const stop = new AbortController()
    const { gate } = gateOf([[]], undefined, { stop })
    const passed = gate.pass()
    stop.abort()
    await passed
    await gate.close()
  })

  it('lets a run stop whose first reading never ends', async () => {
    const stop = new AbortController()
    const { gate } = gateOf([], undefined, { stop, features: () => new Promise(() => {}) })
    const passed = gate.pass()
    stop.abort()
    await passed
  })

  it('waits where no worker listens, as a file without owners does, and says so once', async () => {
    let named: readonly string[] = []
    const { gate, told } = gateOf([], undefined, { workers: async () => 0, features: async () => named })
    const passed = gate.pass()
    await until(() => told.length > 0)
    named = ['on_file']
    await passed
    await gate.close()
    expect(told).toEqual([expect.stringContaining('no worker listens on token-batch')])
  })

  it('waits for a listening worker no longer than --give-up-after says', async () => {
    const { gate } = gateOf([[]], undefined, { workers: async () => 0, giveUpAfterMs: 500 })
    await expect(gate.pass()).rejects.toThrow(/No worker listened .*--give-up-after/)
    await gate.close()
  })

  it('says what it waits for, where workers do not say so at once', async () => {
    let named: readonly string[] = []
    const { gate, told } = gateOf([], undefined, { features: async () => named, featureWaitMs: 20_000 })
    const passed = gate.pass()
    await until(() => told.length > 0)
    named = ['on_file']
    await passed
    await gate.close()
    expect(told).toEqual([expect.stringContaining('every live worker says that it understands on_file (at most 20 s)')])
  })

  it('asks nobody for a profile without owners', async () => {
    const { on_file: _, ...plain } = BUILT_IN.square
    const { gate, readings } = gateOf([[]], { profile: parseProfile('plain.json', JSON.stringify(plain)) })
    await gate.pass()
    await gate.close()
    expect(readings()).toBe(0)
  })
})

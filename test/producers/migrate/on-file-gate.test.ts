// Rows that name owners of cards pass only while every live worker understands them.
import { describe, expect, it } from 'vitest'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { openOnFileGate } from '../../../producers/migrate/on-file-gate.ts'
import { BUILT_IN } from '../../../producers/rows/profile/built-in.ts'
import { parseProfile } from '../../../producers/rows/profile/profile.ts'
import { ConfigError } from '../../../src/config.ts'
import { silent } from '../bundle.ts'

/** `named`: what workers say they understand, reading by reading; the last one stands. */
function gateOf(
  named: readonly (readonly string[])[],
  sent: Partial<Parameters<typeof openOnFileGate>[0]> = { profile: BUILT_IN.square },
  stop = new AbortController(),
) {
  let readings = 0
  const read = async () => named[Math.min(readings++, named.length - 1)] ?? []
  const deps: Pick<FileRunDeps, 'features' | 'featureWaitMs' | 'log' | 'stop'> = {
    ...{ features: read, featureWaitMs: 150, log: silent, stop: stop.signal },
  }
  return {
    gate: openOnFileGate({ recordKind: 'token-create', profile: undefined, ...sent }, deps as FileRunDeps),
    readings: () => readings,
  }
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
    const { gate } = gateOf([[]], undefined, stop)
    const passed = gate.pass()
    stop.abort()
    await passed
    await gate.close()
  })

  it('asks nobody for a profile without owners', async () => {
    const { on_file: _, ...plain } = BUILT_IN.square
    const { gate, readings } = gateOf([[]], { profile: parseProfile('plain.json', JSON.stringify(plain)) })
    await gate.pass()
    await gate.close()
    expect(readings()).toBe(0)
  })
})

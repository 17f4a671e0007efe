// Commands whose jobs nobody answers, as processes: they end at signals, and after `--give-up-after`. The same command
// continues afterwards.
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngines, type Engine, IN_ORDER } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import { ended, lifecycle, senderEnv } from './waiting.ts'

describeEngines('a command that nobody answers', laws, { concurrent: true })

function laws(engine: Engine): void {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const start = (words: string[]) =>
    startCommand([...words, '--client', installation.clientFile], {
      env: senderEnv(engine, installation),
      group: true,
    })
  /** Empties the queues first, so that a job in one belongs to the command that runs. */
  async function files() {
    for (const queue of ['token-batch', 'token-lifecycle']) await installation.queues.obliterate(queue)
    const csv = join(installation.dataDir, 'cards.csv')
    const ndjson = join(installation.dataDir, 'jobs.ndjson')
    await writeFile(csv, `card_number,expiry\n${testPan(1)},12/30\n`)
    await writeFile(ndjson, `${JSON.stringify(lifecycle)}\n`)
    return { csv, ndjson }
  }
  const waiting = (queue: string) =>
    until(async () => (await installation.queues.depth(queue)).waiting > 0, { what: `a job in ${queue}` })

  it('ends at once at a second signal', IN_ORDER, async () => {
    const { csv, ndjson } = await files()
    const [migrate, submit] = [start(['migrate', csv]), start(['submit', ndjson])]
    await Promise.all([waiting('token-batch'), waiting('token-lifecycle')])
    for (const [child, first, second] of [
      [migrate, 'SIGINT', 'SIGTERM'],
      [submit, 'SIGINT', 'SIGINT'],
    ] as const) {
      child.signal(first)
      await child.line(/finishing the work in flight/, { stream: 'stderr' })
      child.signal(second)
      // It did not wait for the 20 s after a first signal, at which it ends with 1.
      expect(await child.exit).toEqual({ code: 130, signal: null })
    }
  })

  it('ends with 1 about 20 s after a first signal, whatever it is doing', IN_ORDER, async () => {
    const { csv, ndjson } = await files()
    const results = join(installation.dataDir, 'stdin.results.csv')
    const reading = start(['migrate', '-', '--format', 'csv', '--batch-id', 'endless', '--results', results])
    reading.write(`card_number,expiry\n${testPan(2)},12/30\n`)
    const children = [start(['migrate', csv]), start(['submit', ndjson]), reading]
    await Promise.all([waiting('token-batch'), waiting('token-lifecycle')])
    const locked = async () => (await readdir(installation.dataDir)).some(name => name.startsWith('stdin.results.csv'))
    await until(locked, { what: 'the run from standard input' })
    const askedAt = performance.now()
    for (const child of children) child.signal('SIGTERM')
    for (const child of children) {
      expect(await ended(child), child.stderr()).toEqual({ code: 1, signal: null })
      expect(child.stderr()).toContain('run the same command again')
    }
    expect(performance.now() - askedAt).toBeGreaterThan(19_000)
    expect(performance.now() - askedAt).toBeLessThan(120_000)
  })

  it('gives up after the time that it was told, with 1, and the same command goes on', IN_ORDER, async () => {
    const { csv, ndjson } = await files()
    const run = async (words: string[]) => {
      const child = start(words)
      return { ...(await ended(child)), said: child.stderr() }
    }
    const told = await Promise.all([
      run(['migrate', csv, '--give-up-after', '2']),
      run(['submit', ndjson, '--give-up-after', '2']),
    ])
    // Its row before the limit is unanswered.
    const two = join(installation.dataDir, 'two.csv')
    await writeFile(two, `card_number,expiry\n${testPan(3)},12/30\n${testPan(4)},12/30\n`)
    told.push(await run(['migrate', two, '--chunk', '1', '--limit', '1', '--give-up-after', '2']))
    for (const { code, said } of told) {
      expect(code, said).toBe(1)
      expect(said).not.toContain('--limit')
      expect(said).toContain('no answer came for 2 s (--give-up-after)')
      expect(said).toContain('run the same command again to continue')
    }
    await installation.openWorkers()
    expect(await run(['migrate', csv, '--give-up-after', '60'])).toMatchObject({ code: 0 })
    expect(await run(['submit', ndjson])).toMatchObject({ code: 3 })
  })
}

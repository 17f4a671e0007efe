// Whatever a command prints, and wherever its text comes from, no terminal obeys it.
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { confirm } from '../../cli/confirm.ts'
import { endUncaught } from '../../cli/ending.ts'
import { EXIT, Stop } from '../../cli/exit.ts'
import { run } from '../../cli/main.ts'
import {
  dataOutput,
  facts,
  paragraphs,
  print,
  printJsonLine,
  prompt,
  say,
  type Terminal,
  table,
  takeConsole,
} from '../../cli/terminal.ts'
import { tellTo } from '../../producers/answer-deadline.ts'
import { openProgress } from '../../producers/progress.ts'
import { noCounts } from '../../src/job/outcome.ts'
import { openLog } from '../../src/log.ts'
import { openRegistry, pageOf } from '../../src/metrics.ts'
import { openOps } from '../../src/ops.ts'

/** A new title for the window, a line that seems to be the product's, an override of the direction, and the 8-bit CSI. */
const HOSTILE = 'db1\u001b]0;owned\u0007\nworkers  well\u202e\u009b2J\u2028'
const SHOWN = 'db1\\u{1b}]0;owned\\u{7}\\u{a}workers  well\\u{202e}\\u{9b}2J\\u{2028}'
const UNSAFE = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/u

function openTerminal() {
  const stdin = new PassThrough()
  const stdout = new PassThrough({ encoding: 'utf8' })
  const stderr = new PassThrough({ encoding: 'utf8' })
  const terminal: Terminal = { env: {}, stdin, stdout, stderr }
  const read = (stream: PassThrough): string => stream.read() ?? ''
  return { terminal, out: () => read(stdout), err: () => read(stderr) }
}

describe('a command', () => {
  it('says and prints a value on one line, without what a terminal obeys', () => {
    const { terminal, out, err } = openTerminal()
    say(terminal, `tokenmill: ${HOSTILE}`)
    prompt(terminal, HOSTILE)
    expect(err()).toBe(`tokenmill: ${SHOWN}\n${SHOWN}`)
    print(terminal, {}, undefined, HOSTILE)
    print(terminal, {}, undefined, ['a', HOSTILE])
    print(terminal, {}, undefined, '')
    expect(out()).toBe(`${SHOWN}\na\n${SHOWN}\n`)
  })

  it('sets a table by what is shown, and keeps a value in its cell', () => {
    const { terminal, out } = openTerminal()
    print(
      terminal,
      {},
      undefined,
      paragraphs([
        table(
          ['HOST', 'ROLE'],
          [
            [HOSTILE, 'w'],
            ['b', 'x'],
          ],
        ),
        facts({ [HOSTILE]: 'c', d: HOSTILE }),
      ]),
    )
    const wide = (text: string) => text.padEnd(SHOWN.length)
    expect(out().split('\n')).toEqual([
      `${wide('HOST')}  ROLE`,
      `${SHOWN}  w`,
      `${wide('b')}  x`,
      '',
      `${SHOWN}  c`,
      `${wide('d')}  ${SHOWN}`,
      '',
    ])
  })

  it('prints JSON that holds the same values', async () => {
    const { terminal, out } = openTerminal()
    print(terminal, { json: true }, { host: HOSTILE }, '')
    await printJsonLine(terminal, JSON.stringify({ [HOSTILE]: 1 }))
    const text = out()
    expect(text).not.toMatch(UNSAFE)
    const [whole = '', line = ''] = text.split(/(?<=^}\n)/m)
    expect([JSON.parse(whole), JSON.parse(line)]).toEqual([{ host: HOSTILE }, { [HOSTILE]: 1 }])
  })

  it('gives data to a file or a pipe as it is, and to no terminal', () => {
    const { terminal } = openTerminal()
    expect(dataOutput(terminal)).toBe(terminal.stdout)
    Object.assign(terminal.stdout, { isTTY: true })
    expect(() => dataOutput(terminal)).toThrow(expect.objectContaining({ status: EXIT.usage }) as Stop)
  })

  it('asks a clean question', async () => {
    const { terminal, err } = openTerminal()
    Object.assign(terminal.stdin, { isTTY: true })
    const asked = confirm(terminal, `Remove ${HOSTILE}?`)
    ;(terminal.stdin as PassThrough).write('y\n')
    await asked
    expect(err()).toContain(`Remove ${SHOWN}? [y/N] `)
  })

  it.each([
    ['a command', [HOSTILE]],
    ['an option', ['status', `--${HOSTILE}`]],
    ['a value', ['batch', 'list', '--limit', HOSTILE]],
    ['a value behind its option', ['batch', 'list', `--limit=${HOSTILE}`]],
    ['an argument too many', ['status', HOSTILE]],
    ['a file', ['inspect', HOSTILE]],
    ['a profile', ['profile', 'show', HOSTILE]],
    ['what looks like a suggestion', ['statu', '--a\n(Did you mean rm?)']],
  ])('refuses %s of the command line by lines of its own', async (_, words) => {
    const { terminal, err } = openTerminal()
    expect(await run(words, terminal)).not.toBe(EXIT.ok)
    const text = err()
    expect(text).not.toMatch(UNSAFE)
    for (const line of text.trimEnd().split('\n')) expect(line).toMatch(/^(tokenmill: |\(Did you mean [a-z]+\?\)$)/)
  })

  it('keeps the suggestion of a refusal on its line', async () => {
    const { terminal, err } = openTerminal()
    await run(['statu'], terminal)
    expect(err()).toBe("tokenmill: unknown command 'statu'\n(Did you mean status?)\n")
  })

  it('that ends by an error that nothing caught says nothing of its message', () => {
    const { terminal, err } = openTerminal()
    const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never)
    onTestFinished(() => exit.mockRestore())
    const end: (thrown: unknown) => void = thrown => endUncaught(terminal, thrown)
    end(new RangeError(HOSTILE))
    expect(err()).toMatch(
      /^tokenmill: unexpected error \(RangeError .+\); this is a defect of tokenmill, please report it\n$/,
    )
    end(new Stop(HOSTILE))
    expect(err()).toBe(`tokenmill: ${SHOWN}\n`)
    expect(exit.mock.calls).toEqual([[EXIT.failure], [EXIT.failure]])
  })

  describe('whose libraries write to the console', () => {
    const { debug, error, info, log, trace, warn } = console
    afterEach(() => {
      Object.assign(console, { debug, error, info, log, trace, warn })
    })

    it('makes a clean line of it on standard error', () => {
      const { terminal, out, err } = openTerminal()
      takeConsole(terminal)
      console.warn(`IMPORTANT! Eviction policy is ${HOSTILE}.`)
      console.log('%s', HOSTILE)
      expect([err(), out()]).toEqual([`IMPORTANT! Eviction policy is ${SHOWN}.\n${SHOWN}\n`, ''])
    })
  })
})

describe('progress', () => {
  it('says what it waits for without what a terminal obeys', () => {
    for (const isTTY of [false, true]) {
      const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY, columns: 500 })
      tellTo(stream)(HOSTILE)
      const awaited = { text: () => `; waits for ${HOSTILE}`, stop: () => undefined }
      const options = { clock: () => 0, total: 9, waitsFor: () => HOSTILE, awaited }
      const progress = openProgress({ stream: stream as unknown as NodeJS.WriteStream, ...options })
      progress.update(noCounts())
      progress.stop()
      const text: string = stream.read()
      expect(text.split(SHOWN).length).toBeGreaterThan(3)
      const own = ['\r', '\u001b[K', '\u001b[J', '\u001b[?25l', '\u001b[?25h']
      expect(own.reduce((rest, sequence) => rest.replaceAll(sequence, ''), text)).not.toMatch(UNSAFE)
    }
  })
})

describe('a role', () => {
  it('logs lines of ASCII controls alone, from which the same values are read', () => {
    const lines: string[] = []
    const log = openLog('info', { host: HOSTILE }, { write: line => lines.push(line) })
    log.child({ [HOSTILE]: 1 }).info({ queue: HOSTILE }, `the queue ${HOSTILE}`)
    expect(lines.join('')).not.toMatch(UNSAFE)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      host: HOSTILE,
      [HOSTILE]: 1,
      queue: HOSTILE,
      msg: `the queue ${HOSTILE}`,
    })
  })

  it('has clean labels, which Prometheus reads as they are shown', async () => {
    const registry = openRegistry({ role: 'worker' })
    registry.gauge('queue_jobs', 'Jobs.', { kind: [] }).set({ kind: HOSTILE }, 3)
    const page = await pageOf([await registry.snapshot()])
    expect(page).not.toMatch(UNSAFE)
    expect(page).toContain(`kind="${SHOWN.replaceAll('\\', '\\\\')}"`)
  })

  it('gives each reason why it isn’t ready one clean line', async () => {
    const ops = await openOps({ host: '127.0.0.1', port: 0, reasons: async () => [HOSTILE], snapshots: async () => [] })
    onTestFinished(() => ops.close())
    const answer = await fetch(`http://127.0.0.1:${ops.port}/readyz`)
    expect(await answer.text()).toBe(`${SHOWN}\n`)
  })
})

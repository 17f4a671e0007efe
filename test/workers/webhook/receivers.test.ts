// The receivers in docs/events.md, run as they stand there at the time of the golden vectors.
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/secret.ts'
import { signWebhook } from '../../../src/vault/webhook-secret.ts'
import { type Child, startScript } from '../../support/process.ts'
import { readVectors } from '../../support/vectors.ts'

interface Case {
  name: string
  headers: Record<string, string>
  body: string
  accepted: boolean
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(join(root, 'docs/events.md'), 'utf8')
const { secret, now, cases } = readVectors<{ secret: string; now: number; cases: Case[] }>('webhooks')

/** The page's program that begins so. */
function programOf(start: string): string {
  const programs = [...page.matchAll(/^```(?:js|python)\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
  const found = programs.filter(code => code.startsWith(start))
  expect(found).toHaveLength(1)
  return found[0] ?? ''
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'receiver-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const env = () => ({ TOKENMILL_WEBHOOK_SECRET: secret, PORT: '0', PYTHONPATH: folder })

function startNode(verify: string): Child {
  write('verify.mjs', programOf(`// verify.mjs, ${verify}`))
  const clock = `data:text/javascript,Date.now = () => ${now * 1_000}; globalThis.Date = class extends Date {
    constructor(...given) { given.length === 0 ? super(${now * 1_000}) : super(...given) } }`
  const receiver = write('receiver.mjs', programOf('// receiver.mjs'))
  return startScript(receiver, [], { env: env(), nodeArgs: ['--import', clock.replaceAll('\n', ' ')] })
}

function startPython(): Child {
  // Python imports this module before the program.
  write('sitecustomize.py', `import time\ntime.time = lambda: ${now}.0\n`)
  return startScript(write('receiver.py', programOf('# receiver.py')), [], { env: env(), node: 'python3' })
}

describe.each([
  ['in Node with a library', () => startNode('with a library')],
  ['in Node without a library', () => startNode('without a library')],
  ['in Python', startPython],
])('the receiver %s', (_, start) => {
  it('takes what the vectors accept, each event once, and nothing else', async () => {
    const child = start()
    const [, port] = await child.line(/port (\d+)/)
    const answered: [string, number][] = []
    for (const { name, headers, body } of cases) {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })
      answered.push([name, answer.status])
    }
    expect(answered).toEqual(cases.map(({ name, accepted }) => [name, accepted ? 204 : 401]))
    expect(child.stdout().match(/batch\.finished/g)).toHaveLength(1)
    await child.kill9()
  })
})

it('has signatures in the vectors that tokenmill makes', () => {
  const [first] = cases
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp, 'webhook-signature': signature } = first?.headers ?? {}
  const made = signWebhook([new Secret(secret)], { id, timestamp: Number(timestamp), body: first?.body ?? '' })
  expect(made).toBe(signature)
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endingOf } from '../../cli/ending.ts'
import { Fault } from '../../src/errors.ts'
import { startCommand } from '../support/process.ts'
import { type Bench, cli, openBench } from './command-bench.ts'

const nowhere = { DATABASE_URL: 'postgres://nobody:hunter2@127.0.0.1:1/none', TOKENMILL_DATA_DIR: '/nonexistent' }
const line = (words: string[], env: NodeJS.ProcessEnv = nowhere) => cli(words, { env })

describe('a command line', () => {
  it('that can not be used ends with 64 and one line of what is wrong', async () => {
    const wrong = [
      ['nonsense'],
      ['scope', 'ad'],
      ['scope', 'add', '--wrong'],
      ['batch', 'show'],
      ['batch', 'show', 'a', 'b'],
      ['batch', 'list', '--limit', 'all'],
    ]
    for (const words of wrong) {
      const { status, stdout, stderr } = await line(words)
      expect(status, words.join(' ')).toBe(64)
      expect(stdout).toBe('')
      expect(stderr, words.join(' ')).toMatch(/^tokenmill: /)
    }
  })

  it('without a command shows what there is, and ends with 64', async () => {
    for (const words of [[], ['client'], ['client', 'key']]) {
      const { status, stderr } = await line(words)
      expect(status).toBe(64)
      expect(stderr).toContain('Usage: tokenmill')
    }
  })

  it('that asks for help gets it on standard output, with 0', async () => {
    for (const words of [
      ['--help'],
      ['client', '--help'],
      ['client', 'key', 'retire', '--help'],
      ['gateway', '--help'],
    ]) {
      const { status, stdout } = await line(words)
      expect(status).toBe(0)
      expect(stdout).toMatch(/^Usage: tokenmill/)
    }
  })

  it('is shown in the list of all commands as in its own help', async () => {
    const { stdout } = await line(['--help'])
    const terms = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)( \[options\])?/gm)].filter(([, name]) => name !== 'help')
    expect(terms.length).toBeGreaterThan(20)
    for (const [, name = '', options = ''] of terms) {
      const own = (await line([name, '--help'])).stdout
      const isFamily = /^Usage: tokenmill \S+ \[options\] \[command\]$/m.test(own)
      const hasOptions = /^ {2}--/m.test(own)
      expect(options !== '', name).toBe(hasOptions && !isFamily)
      expect((await line(['help', name])).stdout).toBe(own)
    }
  })

  it('names a wrong setting in one line, with 78', async () => {
    const { status, stderr } = await line(['client', 'list'], { DATABASE_URL: 'mysql://x' })
    expect({ status, stderr }).toEqual({
      status: 78,
      stderr: 'tokenmill: DATABASE_URL: must start with postgres:// or postgresql://\n',
    })
  })

  it('that finds no server says so with 1, and not the password', async () => {
    const { status, stderr } = await line(['client', 'list'])
    expect(status).toBe(1)
    expect(stderr).toBe(
      'tokenmill: The token store cannot be reached. (ECONNREFUSED; check DATABASE_URL; where it is not set, see server.log in the data directory)\n',
    )
  })
})

describe('a process', () => {
  it('ends with the status of its command, results on one stream and words on the other', async () => {
    const unknown = startCommand(['no-such-command'])
    expect(await unknown.exit).toEqual({ code: 64, signal: null })
    expect(unknown.stdout()).toBe('')
    const version = startCommand(['--version'])
    expect(await version.exit).toEqual({ code: 0, signal: null })
    expect(version.stdout()).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('a server that is there', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench({ empty: true })
  })
  afterAll(() => bench.close())

  it('and does not admit us is told from one that is not there', async () => {
    const url = new URL(bench.url)
    url.password = 'hunter2'
    const refused = await bench.cli(['client', 'list'], { env: { DATABASE_URL: url.href } })
    expect(refused).toMatchObject({ status: 78 })
    expect(refused.stderr).toBe('tokenmill: DATABASE_URL: the server does not accept this user and password\n')
    const none = new URL(bench.url)
    none.pathname = '/no_such_database'
    const absent = await bench.cli(['client', 'list'], { env: { DATABASE_URL: none.href } })
    expect(absent.stderr).toBe('tokenmill: DATABASE_URL: the server has no such database\n')
  })
})

describe('a queue server that is away', () => {
  it('is told with the setting of either engine', () => {
    const { status, line: said } = endingOf(new Fault('queue_away'))
    expect(status).toBe(1)
    expect(said).toMatch(/^The queue server cannot be reached\. \(check REDIS_URL; .* check DATABASE_URL\)$/)
  })
})

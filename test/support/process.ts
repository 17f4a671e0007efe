// A child process of a test: a script of ours or the tokenmill command, its streams collected, to be spoken to,
// waited for and killed. Children that a test leaves behind are killed with the test's own process.
import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HEAP_FLAGS } from '../../bin/launch.mjs'
import { until } from './until.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

export interface StartOptions {
  /** Added to our own environment; undefined removes a variable. */
  env?: Record<string, string | undefined>
  cwd?: string
  /** In a process group of its own, so that `signalGroup` reaches the child and not us. */
  group?: boolean
  nodeArgs?: string[]
  /** The Node that runs it; this process's own. */
  node?: string
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface Child {
  pid: number
  stdout(): string
  stderr(): string
  /** The first match of `pattern` in standard output. Throws at the deadline and when the child ends without it. */
  line(pattern: RegExp, options?: { ms?: number; stream?: 'stdout' | 'stderr' }): Promise<RegExpExecArray>
  /** Writes to standard input; without text, ends it. */
  write(text?: string): void
  signal(name: NodeJS.Signals): void
  signalGroup(name: NodeJS.Signals): void
  kill9(): Promise<Exit>
  exit: Promise<Exit>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Kills the child when our own process ends, if it still runs then. One listener does it for all. */
export function killAtExit(child: ChildProcess): void {
  running.add(child)
  child.once('exit', () => running.delete(child))
}

/** Runs a script, given relative to the root of the project. */
export function startScript(script: string, args: string[] = [], options: StartOptions = {}): Child {
  const { env = {}, cwd = root, group = false, nodeArgs = [], node = process.execPath } = options
  const child = spawn(node, [...nodeArgs, resolve(root, script), ...args], {
    cwd,
    detached: group,
    env: childEnvironment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return watch(child)
}

/** Runs the tokenmill command. */
export function startCommand(args: string[], options: StartOptions = {}): Child {
  return startScript(join(root, 'cli/main.ts'), args, { nodeArgs: HEAP_FLAGS, ...options })
}

/** Runs lines of a shell as one types them; it ends at the first that fails. */
export function startShell(lines: string, options: Pick<StartOptions, 'env' | 'cwd'> = {}): Child {
  const { env = {}, cwd = root } = options
  return watch(spawn('bash', ['-ec', lines], { cwd, env: childEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] }))
}

/** Vitest's own variables would make the child believe that it is a test. */
export function childEnvironment(added: Record<string, string | undefined>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, ...added }
  for (const name of Object.keys(env))
    if (env[name] === undefined || /^(VITEST|NODE_OPTIONS$|NODE_V8_COVERAGE$)/.test(name)) delete env[name]
  if (!('NODE_ENV' in added)) delete env['NODE_ENV']
  return env
}

function watch(child: ChildProcess): Child {
  killAtExit(child)
  const text = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.setEncoding('utf8').on('data', chunk => {
      text[stream] += chunk
    })
  // A child that ends without reading is seen by its exit.
  child.stdin?.on('error', () => undefined)
  let ended = false
  const exit = new Promise<Exit>((done, fail) => {
    child.once('error', fail)
    child.once('close', (code, signal) => {
      ended = true
      done({ code, signal })
    })
  })
  exit.catch(() => undefined)
  return {
    pid: child.pid ?? -1,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    line: async (pattern, { ms = 60_000, stream = 'stdout' } = {}) => {
      const find = () => {
        const match = pattern.exec(text[stream])
        if (!match && ended) throw new Error(`ended without ${pattern}:\n${text.stdout}\n${text.stderr}`)
        return match
      }
      return await until(find, { ms, what: `${pattern} on ${stream}` })
    },
    write: part => (part === undefined ? child.stdin?.end() : child.stdin?.write(part)),
    signal: name => child.kill(name),
    signalGroup: name => process.kill(-(child.pid ?? Number.NaN), name),
    kill9: () => {
      child.kill('SIGKILL')
      return exit
    },
    exit,
  }
}

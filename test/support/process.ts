// A child process of a test: a script of the project or the tokenmill command. Its output is collected. Children that
// still run are killed when the test's process exits.
import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HEAP_FLAGS } from '../../bin/launch.mjs'
import { until } from './until.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

export interface StartOptions {
  /** Added to the environment of the test; undefined removes a variable. */
  env?: Record<string, string | undefined>
  cwd?: string
  /** Starts the child in a separate process group, so that `signalGroup` doesn't reach the test. */
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
  /**
   * The first match of `pattern` in standard output, or in `stream`. Throws at the deadline, or if the child ends
   * without a match.
   */
  line(pattern: RegExp, options?: { ms?: number; stream?: 'stdout' | 'stderr' }): Promise<RegExpExecArray>
  /** Writes to standard input; without a text it ends standard input. */
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

/** Kills the child if it still runs when this process exits. */
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

/** Runs lines of a shell; it ends at the first that fails. */
export function startShell(lines: string, options: Pick<StartOptions, 'env' | 'cwd'> = {}): Child {
  const { env = {}, cwd = root } = options
  return watch(spawn('bash', ['-ec', lines], { cwd, env: childEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] }))
}

/** The environment of a child, without the variables of Vitest, with which the child would behave like a test. */
export function childEnvironment(added: Record<string, string | undefined>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, ...added }
  for (const name of Object.keys(env))
    if (env[name] === undefined || /^(VITEST|NODE_V8_COVERAGE$)/.test(name)) delete env[name]
  for (const name of ['NODE_ENV', 'NODE_OPTIONS']) if (!(name in added)) delete env[name]
  return env
}

const started = new Map<Child, number>()

/** Kills the children that were started since then, by `performance.now()`, and waits until they have ended. */
export async function killStartedSince(moment: number): Promise<void> {
  await Promise.allSettled([...started].filter(([, at]) => at >= moment).map(([child]) => child.kill9()))
}

function watch(child: ChildProcess): Child {
  const watched = watchedOf(child)
  started.set(watched, performance.now())
  child.once('close', () => started.delete(watched))
  return watched
}

function watchedOf(child: ChildProcess): Child {
  killAtExit(child)
  const text = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.setEncoding('utf8').on('data', chunk => {
      text[stream] += chunk
    })
  // An error of standard input is ignored: a child that ends without reading is noticed by its exit.
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
    line: async (pattern, { stream = 'stdout', ...options } = {}) => {
      const find = () => {
        const match = pattern.exec(text[stream])
        if (!match && ended) throw new Error(`ended without ${pattern}:\n${text.stdout}\n${text.stderr}`)
        return match
      }
      return await until(find, { ...options, what: `${pattern} on ${stream}` })
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

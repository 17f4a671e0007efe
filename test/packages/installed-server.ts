// The server's package as a stranger has it: packed, installed into an empty folder outside of the checkout without any
// install script, and then made read-only. Its commands run as another user, where this process may become one.
import { execFile } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Lock } from '../../bin/build/shrinkwrap.ts'
import { stage } from '../../bin/build/stage.ts'
import { type Child, childEnvironment, type StartOptions, startScript } from '../support/process.ts'

export interface InstalledServer {
  /** The folder in which npm installed the package. */
  project: string
  /** Makes a folder to which the other user may write. */
  folder(name: string): string
  /** Runs the command in a folder. */
  start(words: string[], options: Pick<StartOptions, 'env' | 'nodeArgs'> & { cwd: string; bin?: string }): Child
  remove(): void
}

/** The account `nobody` of most systems. */
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

export async function installServer(): Promise<InstalledServer> {
  const place = mkdtempSync(join(tmpdir(), 'server-'))
  chmodSync(place, 0o755)
  const node = lendNode(place)
  const env = childEnvironment({
    PATH: [dirname(node), process.env['PATH']].join(delimiter),
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
  })
  const project = join(place, 'project')
  mkdirSync(project)
  await pack(join(place, 'staged'), project, env)
  await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: project, env })
  setModes(project, { directory: 0o555 })
  const command = join(project, 'node_modules/.bin/tokenmill')
  return {
    project,
    folder(name) {
      const path = join(place, name)
      mkdirSync(path)
      if (isRoot) chownSync(path, NOBODY, NOBODY)
      return path
    },
    start(words, { bin = command, nodeArgs = [], ...options }) {
      const other = isRoot ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', node] : []
      return startScript(bin, words, {
        ...options,
        node: isRoot ? 'setpriv' : node,
        nodeArgs: [...other, ...nodeArgs],
        env: { PATH: env['PATH'], HOME: '/nonexistent', DATABASE_URL: undefined, REDIS_URL: undefined, ...options.env },
      })
    },
    remove() {
      setModes(project, { directory: 0o755 })
      rmSync(place, { recursive: true, force: true })
    },
  }
}

/** Packs the staged tree into the project, with the lock that npm would write for it from a registry. */
async function pack(staged: string, project: string, env: NodeJS.ProcessEnv): Promise<void> {
  await stage(staged)
  const { stdout } = await promisify(execFile)('npm', ['pack', staged, '--silent'], { cwd: project, env })
  const tarball = `file:${stdout.trim()}`
  const { packages } = JSON.parse(await readFile(join(staged, 'npm-shrinkwrap.json'), 'utf8')) as Lock
  const { '': server = {}, ...others } = packages
  const manifest = { name: 'shop', version: '1.0.0', private: true, dependencies: { tokenmill: tarball } }
  const lock = {
    name: manifest.name,
    version: manifest.version,
    lockfileVersion: 3,
    packages: { '': manifest, 'node_modules/tokenmill': { ...server, resolved: tarball }, ...others },
  }
  await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(project, 'package-lock.json'), JSON.stringify(lock))
}

/** This Node, at a path that every user reaches. */
function lendNode(place: string): string {
  const folder = join(place, 'node')
  mkdirSync(folder)
  const node = join(folder, 'node')
  try {
    linkSync(process.execPath, node)
  } catch {
    // It is on another volume.
    copyFileSync(process.execPath, node)
  }
  chmodSync(node, 0o755)
  return node
}

function setModes(folder: string, { directory }: { directory: number }): void {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
    if (entry.isDirectory()) chmodSync(join(entry.parentPath, entry.name), directory)
  chmodSync(folder, directory)
}

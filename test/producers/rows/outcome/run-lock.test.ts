// One run at a time writes a results file, until it ends or its process has ended.
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lockRun } from '../../../../producers/rows/outcome/run-lock.ts'

describe('the lock of a run', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-lock-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const results = () => join(folder, 'cards.csv.results.csv')
  const leave = (owner: object | string) =>
    writeFile(`${results()}.lock`, typeof owner === 'string' ? owner : JSON.stringify(owner))

  it('is held by one at a time, who is named to the others', async () => {
    const release = await lockRun(results())
    await expect(lockRun(results())).rejects.toThrow(`is being written by process ${process.pid}. Wait`)
    await release()
    await (await lockRun(results()))()
    expect(await readdir(folder)).toEqual([])
  })

  it('is taken from one that is gone, by one of all who try', async () => {
    // A process id that no process has, one that another process has now, and a text that is no lock.
    for (const left of [
      { host: hostname(), pid: 2 ** 22 - 1, began: '1' },
      { host: hostname(), pid: 1, began: 'x' },
      '',
    ]) {
      await leave(left)
      const ends = await Promise.allSettled(Array.from({ length: 10 }, () => lockRun(results())))
      const held = ends.filter(end => end.status === 'fulfilled')
      expect(held).toHaveLength(1)
      for (const { value: release } of held) await release()
      expect(await readdir(folder)).toEqual([])
    }
  })

  it('of another host is nobody’s to judge', async () => {
    await leave({ host: 'elsewhere', pid: 1, began: '1' })
    await expect(lockRun(results())).rejects.toThrow('by process 1 on elsewhere.')
    await rm(`${results()}.lock`)
  })

  it('of another container with the same host name is nobody’s to judge', async () => {
    const gone = { host: hostname(), pid: 2 ** 22 - 1, began: '1' }
    await leave({ ...gone, pids: 'pid:[1]' })
    await expect(lockRun(results())).rejects.toThrow(`by process ${gone.pid} of another container.`)
    await rm(`${results()}.lock`)
    const pids = await readlink('/proc/self/ns/pid')
    await leave({ ...gone, pids })
    const release = await lockRun(results())
    expect(JSON.parse(await readFile(`${results()}.lock`, 'utf8'))).toMatchObject({ pid: process.pid, pids })
    await release()
  })
})

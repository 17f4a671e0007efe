import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BUILT_IN } from '../../../../producers/rows/profile/built-in.ts'
import { parseProfile } from '../../../../producers/rows/profile/profile.ts'
import { profileNamed, read, readOwners } from './profiled.ts'
import { SAMPLES } from './samples.ts'

describe('the profile', () => {
  it.each(Object.entries(SAMPLES))('%s reads a file in the shape of its provider', async (name, { file, rows }) => {
    expect(await read(profileNamed(name), file)).toEqual(rows)
    expect(await read(profileNamed(name), file, { sizes: [1] })).toEqual(rows)
  })

  it.each(Object.entries(SAMPLES))('%s says whose cards they are', async (name, { file, owners = [] }) => {
    const found = await readOwners(profileNamed(name), file)
    expect(found.filter(owner => owner !== undefined)).toEqual(owners)
  })

  it.each(Object.entries(BUILT_IN))('%s keeps the rules of profiles', (name, profile) => {
    expect(parseProfile(name, JSON.stringify(profile))).toEqual(profile)
  })

  it('of every built-in and example name has such a file, and bears that name', () => {
    const examples = readdirSync(new URL('../../../../docs/profiles/', import.meta.url))
      .filter(file => file.endsWith('.json'))
      .map(file => file.slice(0, -'.json'.length))
    expect(Object.keys(SAMPLES).sort()).toEqual([...Object.keys(BUILT_IN), ...examples].sort())
    for (const name of Object.keys(SAMPLES)) expect(profileNamed(name).name).toBe(name)
  })
})

// Looking through the failed set reads whole jobs, up to megabytes each. So a process looks once at a time, and few wait for it.

/** Does the work when its turn comes; `busy`: too many wait, or too many of this person's, and nothing is done. */
export type InTurn = <T>(personId: string, work: () => Promise<T>) => Promise<T | 'busy'>

/** `most`: how many are under way or wait, of all people; `mostOfOne`: of one person. */
export function openTurns({ most, mostOfOne }: { most: number; mostOfOne: number }): InTurn {
  const asked: string[] = []
  let last: Promise<unknown> = Promise.resolve()
  return async (personId, work) => {
    if (asked.length >= most || asked.filter(one => one === personId).length >= mostOfOne) return 'busy'
    asked.push(personId)
    const turn = last.then(work)
    last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      asked.splice(asked.indexOf(personId), 1)
    }
  }
}

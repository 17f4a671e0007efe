// Finds circles in a graph: sets of nodes of which each can be reached from every other (Tarjan's algorithm).

/** `edges`: node → the nodes to which it points. Each circle is sorted. Nodes on no circle are left out. */
export function circlesIn(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const circles: string[][] = []
  const visit = (node: string) => {
    const at = order.size
    order.set(node, at)
    lowest.set(node, at)
    open.push(node)
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) visit(next)
      if (open.includes(next)) lowest.set(node, Math.min(lowest.get(node) ?? at, lowest.get(next) ?? at))
    }
    if (lowest.get(node) !== at) return
    const circle = open.splice(open.indexOf(node))
    if (circle.length > 1 || edges.get(node)?.includes(node)) circles.push(circle.sort())
  }
  for (const node of edges.keys()) if (!order.has(node)) visit(node)
  return circles
}

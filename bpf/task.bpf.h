/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which tasks the user asked for. Probes that use it list the members from task_struct.cgroups to kernfs_node.id
 * and the enumerator cgroup_subsys_id.cpu_cgrp_id.
 */

#define CGROUP_ROOT_ID 1 /* kernfs_create_root: the first of each hierarchy */

helper u64 cgroup_id_of(void *cgroup)
{
	void *node = read_kernel(cgroup, void *, CGROUP__KN);

	return read_kernel(node, u64, KERNFS_NODE__ID);
}

/*
 * The cgroup that CPU time is charged to: v2's, or on v1 that of the cpu controller. Where both are mounted
 * (CGROUP_OF_V2, a bit of no id), who is in none of v1's groups is told by v2's.
 */
helper u64 task_cgroup_id(void *task)
{
	void *css_set = read_kernel(task, void *, TASK_STRUCT__CGROUPS);
#ifdef CGROUP_V1
	void *css = read_kernel(css_set, void *, CSS_SET__SUBSYS + 8 * CPU_CGRP_ID);
	u64 id = cgroup_id_of(read_kernel(css, void *, CGROUP_SUBSYS_STATE__CGROUP));

#ifdef CGROUP_OF_V2
	if (id == CGROUP_ROOT_ID)
		id = CGROUP_OF_V2 | cgroup_id_of(read_kernel(css_set, void *, CSS_SET__DFL_CGRP));
#endif
	return id;
#else
	return cgroup_id_of(read_kernel(css_set, void *, CSS_SET__DFL_CGRP));
#endif
}

helper bool task_wanted(void *task)
{
#ifdef FILTER_TGID
	if (read_kernel(task, u32, TASK_STRUCT__TGID) != FILTER_TGID)
		return false;
#endif
#ifdef FILTER_CGROUP
	if (task_cgroup_id(task) != FILTER_CGROUP)
		return false;
#endif
	return true;
}

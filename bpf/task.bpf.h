/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which tasks the user asked for. Probes that use it list the members from task_struct.cgroups to kernfs_node.id
 * and the enumerator cgroup_subsys_id.cpu_cgrp_id.
 */

/* The cgroup that CPU time is charged to: v2's, or on v1 that of the cpu controller. */
helper u64 task_cgroup_id(void *task)
{
	void *css_set = read_kernel(task, void *, TASK_STRUCT__CGROUPS);
#ifdef CGROUP_V1
	void *css = read_kernel(css_set, void *, CSS_SET__SUBSYS + 8 * CPU_CGRP_ID);
	void *cgroup = read_kernel(css, void *, CGROUP_SUBSYS_STATE__CGROUP);
#else
	void *cgroup = read_kernel(css_set, void *, CSS_SET__DFL_CGRP);
#endif
	void *node = read_kernel(cgroup, void *, CGROUP__KN);

	return read_kernel(node, u64, KERNFS_NODE__ID);
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
